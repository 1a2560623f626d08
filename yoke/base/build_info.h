// What this build is: the text behind `yoke version`. The values are written at build time by cmake/build_info.cmake.
#pragma once
#include <string_view>

namespace yoke {

struct BuildInfo {
  std::string_view version;
  std::string_view commit;  // twelve hex digits, "-dirty" when the tree had changes, "unknown" outside git
  std::string_view compiler;
  std::string_view build_type;
  std::string_view sanitizers;  // empty in a release
  std::string_view processor;
  std::string_view cuda;  // "no", or the toolkit and how many kernel files were compiled
};

BuildInfo build_info();

}  // namespace yoke
