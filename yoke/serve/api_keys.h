// The keys that a server takes, from a file that holds only their hashes: one line each, a name and the SHA-256 of the
// key in hex. Comparing takes the same time for every wrong key.
//
//   # printf %s KEY | sha256sum
//   alice 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
//
// Immutable once read.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::serve {

class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may ask
  // Error(kInvalid) with the line that is wrong; Error(kPermission) for a file that others can write.
  static ApiKeys load(const std::filesystem::path& file);
  static ApiKeys parse(std::string_view text, std::string_view source);

  bool are_needed() const { return !rows_.empty(); }
  // Whose key it is.
  std::optional<std::string> owner(std::string_view key) const;

 private:
  struct Row {
    std::string name, hash;
  };
  std::vector<Row> rows_;
};

}  // namespace yoke::serve
