// Values of a machine's files. Absent is nothing; what is there and is not of the form expected is an Error kInvalid
// that names the file, as guessing would only hide what is broken.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"

namespace yoke::probe {

Error broken_file(std::string_view path, std::string_view wanted, std::string_view content);

std::optional<std::int64_t> to_number(std::string_view text);  // the whole text, decimal
std::optional<std::int64_t> read_number(const FileTree& tree, const std::string& path);
std::optional<std::string> read_nonempty(const FileTree& tree, const std::string& path);  // trimmed

// A file that others may not be allowed to read: not allowed is the same as absent.
std::optional<std::string> read_if_allowed(const FileTree& tree, const std::string& path);

struct Assignment {
  std::string name, value;  // the value without its quotes
};
// Lines NAME=VALUE, with or without quotes, as in os-release, dgx-release and nccl.conf; others are passed over.
std::vector<Assignment> parse_assignments(std::string_view text);
// Lines "export NAME=value" of a shell's file, the last of each name: with or without quotes, several to a line, a
// comment behind. Only those that stand at the beginning of a line, as what is indented is mostly under a condition,
// and none whose value the shell would have to work out ($, `, \).
std::vector<Assignment> parse_exports(std::string_view text);
std::string without_export(std::string_view name);  // "export NCCL_DEBUG" -> "NCCL_DEBUG"
// The last of that name, as later lines win.
std::optional<std::string> find_assignment(const std::vector<Assignment>& assignments, std::string_view name);

std::string last_part(std::string_view path);  // of a path: "mlx5_core"

}  // namespace yoke::probe
