// The folders that a user's own settings name for NCCL: NCCL_HOME and its like, LD_LIBRARY_PATH, and the loader's
// configuration. Read from the environment and from the files in which people write such lines.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::probe {

using Variables = std::map<std::string, std::string, std::less<>>;

// The variables after the lines NAME=value and "export NAME=value" of a shell's file, with $NAME, ${NAME} and a
// leading ~ replaced. A value that needs a shell to compute it (`…`, $(…)) leaves its variable as it was.
Variables with_shell_assignments(Variables variables, std::string_view text);

// The folders of ld.so.conf, with the files that it includes.
std::vector<std::string> loader_folders(const FileTree& files);

// Folders in which libnccl.so.2 may lie, by the variables of this environment and of the shell files below $HOME and
// /etc. Absolute paths; a folder may be named twice, and need not exist.
std::vector<std::string> nccl_folders(const FileTree& files, const Variables& environment);

}  // namespace yoke::probe
