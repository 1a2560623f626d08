// SHA-256, BLAKE2b, random tokens and hashes with a secret, by libsodium.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace yoke {

std::string sha256_hex(std::string_view data);

// Reads the file in pieces; throws Error where it cannot be read.
std::string sha256_file_hex(const std::filesystem::path& file);

// BLAKE2b of 16 to 64 bytes, twice as many digits: faster than SHA-256, for what nobody else must compute too.
std::string blake2b_hex(std::string_view data, std::size_t bytes);

// HMAC-SHA-256: only who knows the key can make it, or check it.
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

// A secret from the system's generator, in hex: `bytes` bytes, twice as many digits.
std::string random_token_hex(std::size_t bytes);

// For tables whose keys come from a file: hashes that depend on a number of this process, so that nobody can write keys
// that collide and make a table slow.
struct SecretHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;  // SipHash
};
std::uint64_t secret_number();  // the same throughout the process

// Compares in constant time, for secrets.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace yoke
