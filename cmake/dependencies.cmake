# Everything comes from the distribution (scripts/install-deps); nothing is downloaded, nothing vendored.
# Archives, not shared libraries: yoke is one file that needs only glibc where it runs.
find_package(Threads REQUIRED)
find_path(YAML_CPP_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_library(YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
find_path(SODIUM_INCLUDE sodium.h REQUIRED)
find_library(SODIUM_ARCHIVE libsodium.a REQUIRED)
find_path(SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(SQLITE_ARCHIVE libsqlite3.a REQUIRED)
find_path(PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(PCRE2_ARCHIVE libpcre2-8.a REQUIRED)
find_path(UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(UTF8PROC_ARCHIVE libutf8proc.a REQUIRED)
foreach(header fmt/format.h spdlog/spdlog.h nlohmann/json.hpp tl/expected.hpp CLI/CLI.hpp)
  string(MAKE_C_IDENTIFIER "HAVE_${header}" found)
  find_path(${found} ${header} REQUIRED)
endforeach()

add_library(yoke_dependencies INTERFACE)
target_link_libraries(yoke_dependencies INTERFACE ${YAML_CPP_ARCHIVE} ${SODIUM_ARCHIVE} ${SQLITE_ARCHIVE} ${PCRE2_ARCHIVE}
                      ${UTF8PROC_ARCHIVE} m dl
                      Threads::Threads)
# Debian ships no archives of fmt and spdlog: fmt is compiled once (cmake/fmt.cc says why), spdlog used header-only.
add_library(yoke_fmt STATIC cmake/fmt.cc)
target_link_libraries(yoke_dependencies INTERFACE yoke_fmt)
target_compile_definitions(yoke_dependencies INTERFACE SPDLOG_FMT_EXTERNAL)

set(yoke_static_runtime -static-libstdc++ -static-libgcc)

# CUDA: the toolkit is optional, and files ending in .cu are the only ones that need it.
file(GLOB_RECURSE yoke_cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/yoke/*.cu)
set(yoke_cuda_description "no")
if(NOT YOKE_CUDA STREQUAL "OFF" AND NOT CMAKE_CROSSCOMPILING)
  find_program(YOKE_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
  if(YOKE_NVCC)
    execute_process(COMMAND ${YOKE_NVCC} --version OUTPUT_VARIABLE nvcc_version)
    string(REGEX MATCH "release ([0-9.]+)" nvcc_release "${nvcc_version}")
    list(LENGTH yoke_cuda_sources cuda_file_count)
    set(yoke_cuda_description "toolkit ${CMAKE_MATCH_1}, ${cuda_file_count} kernel files")
  elseif(YOKE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "YOKE_CUDA=ON but nvcc was not found: put it on PATH, or set CUDA_HOME")
  endif()
endif()
