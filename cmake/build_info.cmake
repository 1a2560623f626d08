execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude *
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT "unknown")
endif()
set(content "// Written by cmake/build_info.cmake at each build.
#include \"yoke/base/build_info.h\"

namespace yoke {
BuildInfo build_info() {
  return {.version = \"${VERSION}\", .commit = \"${COMMIT}\", .compiler = \"${COMPILER}\", .build_type = \"${BUILD_TYPE}\",
          .sanitizers = \"${SANITIZE}\", .processor = \"${PROCESSOR}\", .cuda = \"${CUDA}\"};
}
}  // namespace yoke
")
set(previous "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} previous)
endif()
if(NOT previous STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
