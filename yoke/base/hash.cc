#include "yoke/base/hash.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "yoke/base/check.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

void start_sodium() {
  static const int status = sodium_init();  // 0 or 1 (already done); thread-safe by the static
  YOKE_CHECK_GE(status, 0);
}

std::string hex(const unsigned char* data, std::size_t size) {
  std::string text(size * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), data, size);
  text.pop_back();
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view data) {
  start_sodium();
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(data.data()), data.size());
  return hex(digest.data(), digest.size());
}

std::string sha256_file_hex(const std::filesystem::path& file) {
  start_sodium();
  const UniqueFd fd = open_file(file, O_RDONLY);
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<unsigned char> buffer(1 << 20);
  while (const std::size_t count = read_some(fd, buffer.data(), buffer.size(), file)) {
    crypto_hash_sha256_update(&state, buffer.data(), count);
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state, digest.data());
  return hex(digest.data(), digest.size());
}

std::string blake2b_hex(std::string_view data, std::size_t bytes) {
  start_sodium();
  std::vector<unsigned char> digest(bytes);
  crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char*>(data.data()), data.size(),
                     nullptr, 0);
  return hex(digest.data(), digest.size());
}

std::string random_token_hex(std::size_t bytes) {
  start_sodium();
  std::vector<unsigned char> token(bytes);
  randombytes_buf(token.data(), token.size());
  return hex(token.data(), token.size());
}

namespace {

using HashKey = std::array<unsigned char, crypto_shorthash_KEYBYTES>;

const HashKey& hash_key() {
  static const HashKey key = [] {
    start_sodium();
    HashKey made{};
    randombytes_buf(made.data(), made.size());
    return made;
  }();
  return key;
}

}  // namespace

std::size_t SecretHash::operator()(std::string_view text) const {
  std::uint64_t hash = 0;
  static_assert(sizeof hash == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash), reinterpret_cast<const unsigned char*>(text.data()),
                   text.size(), hash_key().data());
  return hash;
}

std::uint64_t secret_number() {
  static const std::uint64_t number = SecretHash{}("number");
  return number;
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  start_sodium();
  const auto bytes = [](std::string_view part) { return reinterpret_cast<const unsigned char*>(part.data()); };
  crypto_auth_hmacsha256_state state{};
  crypto_auth_hmacsha256_init(&state, bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, bytes(text), text.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  crypto_auth_hmacsha256_final(&state, mac.data());
  return hex(mac.data(), mac.size());
}

bool equal_secrets(std::string_view a, std::string_view b) {
  start_sodium();
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace yoke
