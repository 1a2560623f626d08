# Puts files into the program: yoke/base/embedded.h declares how to ask for them. Included by CMakeLists.txt, this file
# makes the rule; run by that rule (cmake -P), it writes the source.
#
# The bytes become a table of numbers: any content passes, and no compiler limits the length of that, as string
# literals are by the standard. Rejected: the assembler's .incbin, which hides the files from the list of dependencies.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(yoke_embedded_source ${CMAKE_BINARY_DIR}/generated/embedded.cc)
  file(GLOB_RECURSE yoke_embedded_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fixtures/*.tree)
  list(SORT yoke_embedded_files)
  # The tokenizer of made models.
  list(APPEND yoke_embedded_files ${CMAKE_SOURCE_DIR}/models/nano/tokenizer.json
       ${CMAKE_SOURCE_DIR}/models/nano/tokenizer_config.json)
  # What yoke explain prints of a rule.
  list(APPEND yoke_embedded_files ${CMAKE_SOURCE_DIR}/docs/checks.md)
  # What engines are: yoke/launch/engine_file.h.
  file(GLOB yoke_engine_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/yoke/launch/engines/*.yaml)
  list(SORT yoke_engine_files)
  list(APPEND yoke_embedded_files ${yoke_engine_files})
  # The pages of yoke serve and yoke watch.
  file(GLOB yoke_page_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/yoke/serve/page/* ${CMAKE_SOURCE_DIR}/yoke/watch/page/*)
  list(SORT yoke_page_files)
  list(APPEND yoke_embedded_files ${yoke_page_files})
  # Kernels for GPUs, as "kernels/linear.fatbin"; none where there is no nvcc.
  list(APPEND yoke_embedded_files ${yoke_kernel_files})
  # Through a file, as the list is too long to be a good command line, and so that a file that goes is noticed too.
  string(REPLACE ";" "\n" yoke_embedded_list "${yoke_embedded_files}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/embedded.list CONTENT "${yoke_embedded_list}\n" @ONLY)
  add_custom_command(
    OUTPUT ${yoke_embedded_source}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR} -DLIST=${CMAKE_BINARY_DIR}/generated/embedded.list
            -DOUTPUT=${yoke_embedded_source} -DGENERATED=${CMAKE_BINARY_DIR}/generated -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${yoke_embedded_files} ${CMAKE_BINARY_DIR}/generated/embedded.list ${CMAKE_CURRENT_LIST_FILE}
    VERBATIM COMMENT "Embedding files")
  return()
endif()

file(STRINGS ${LIST} files)
set(arrays "")
set(rows "")
set(count 0)
foreach(file ${files})
  file(RELATIVE_PATH path ${FOLDER} ${file})
  string(REGEX REPLACE "^tests/fixtures/" "" path "${path}")
  cmake_path(IS_PREFIX GENERATED ${file} is_generated)
  if(is_generated)
    file(RELATIVE_PATH path ${GENERATED} ${file})
  endif()
  file(SIZE ${file} size)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  # A zero behind each, so that an empty file is an array too.
  string(APPEND arrays "alignas(16) constexpr unsigned char kFile${count}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${path}\", kFile${count}, ${size}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/embed_files.cmake.
#include \"yoke/base/embedded.h\"

#include <cstddef>

namespace yoke {
namespace {

${arrays}
struct Row {
  std::string_view path;
  const unsigned char* bytes;
  std::size_t size;
};
constexpr Row kRows[] = {
${rows}};

}  // namespace

std::optional<std::string_view> embedded_file(std::string_view path) {
  for (const Row& row : kRows) {
    if (row.path == path) return std::string_view(reinterpret_cast<const char*>(row.bytes), row.size);
  }
  return std::nullopt;
}

}  // namespace yoke
")
