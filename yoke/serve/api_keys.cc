#include "yoke/serve/api_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke::serve {

ApiKeys ApiKeys::load(const std::filesystem::path& file) {
  const ApiKeys keys = parse(read_file(file, Bytes{1 << 20}), file.native());
  using std::filesystem::perms;
  const perms mode = std::filesystem::status(file).permissions();
  if ((mode & (perms::group_write | perms::others_write)) != perms::none) {
    throw Error(ErrorCode::kPermission, fmt::format("others can write the file of keys '{}'", file.native()),
                fmt::format("chmod 600 {}", file.native()));
  }
  return keys;
}

ApiKeys ApiKeys::parse(std::string_view text, std::string_view source) {
  ApiKeys keys;
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = line.find_first_of(" \t");
    const std::string_view hash = blank == std::string_view::npos ? std::string_view() : trim(line.substr(blank));
    const bool is_hash = hash.size() == 64 && std::all_of(hash.begin(), hash.end(), [](char c) {
                           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                         });
    if (!is_hash) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: this is no 'NAME SHA256'", source, number),
                  "a key's hash is printed by: printf %s KEY | sha256sum");
    }
    keys.rows_.push_back({std::string(line.substr(0, blank)), std::string(hash)});
  }
  if (keys.rows_.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} has no keys: nobody could ask", source),
                "add a line 'NAME SHA256', or leave --api-key-file out");
  }
  return keys;
}

std::optional<std::string> ApiKeys::owner(std::string_view key) const {
  const std::string hash = sha256_hex(key);
  std::optional<std::string> found;
  for (const Row& row : rows_) {  // all of them, always
    if (equal_secrets(hash, row.hash)) found = row.name;
  }
  return found;
}

}  // namespace yoke::serve
