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
# The line editor of yoke chat, and what its archive needs (docs/decisions/0011-libedit.md).
find_path(EDIT_INCLUDE histedit.h REQUIRED)
find_library(EDIT_ARCHIVE libedit.a REQUIRED)
find_library(TINFO_ARCHIVE libtinfo.a REQUIRED)
# The screen of yoke watch, of the same package (libncurses-dev).
find_path(CURSES_INCLUDE curses.h REQUIRED)
find_library(CURSES_ARCHIVE libncursesw.a REQUIRED)
find_library(BSD_ARCHIVE libbsd.a REQUIRED)
find_library(MD_ARCHIVE libmd.a REQUIRED)
foreach(header fmt/format.h spdlog/spdlog.h nlohmann/json.hpp tl/expected.hpp CLI/CLI.hpp)
  string(MAKE_C_IDENTIFIER "HAVE_${header}" found)
  find_path(${found} ${header} REQUIRED)
endforeach()

add_library(yoke_dependencies INTERFACE)
target_link_libraries(yoke_dependencies INTERFACE ${YAML_CPP_ARCHIVE} ${SODIUM_ARCHIVE} ${SQLITE_ARCHIVE} ${PCRE2_ARCHIVE}
                      ${UTF8PROC_ARCHIVE} ${EDIT_ARCHIVE} ${CURSES_ARCHIVE} ${TINFO_ARCHIVE} ${BSD_ARCHIVE} ${MD_ARCHIVE} m dl
                      Threads::Threads)
# Debian ships no archives of fmt and spdlog: fmt is compiled once (cmake/fmt.cc says why), spdlog used header-only.
add_library(yoke_fmt STATIC cmake/fmt.cc)
target_link_libraries(yoke_dependencies INTERFACE yoke_fmt)
target_compile_definitions(yoke_dependencies INTERFACE SPDLOG_FMT_EXTERNAL)

set(yoke_static_runtime -static-libstdc++ -static-libgcc)

# CUDA: the toolkit is optional, and files ending in .cu are the only ones that need it (cmake/cuda.cmake). What it makes
# runs on GPUs, so the processor that the program is built for does not matter.
file(GLOB_RECURSE yoke_cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/yoke/*.cu)
set(yoke_cuda_description "no")
if(NOT YOKE_CUDA STREQUAL "OFF")
  find_program(YOKE_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin NO_CMAKE_FIND_ROOT_PATH)
  if(YOKE_NVCC)
    execute_process(COMMAND ${YOKE_NVCC} --version OUTPUT_VARIABLE nvcc_version)
    string(REGEX MATCH "release ([0-9.]+)" nvcc_release "${nvcc_version}")
    set(yoke_nvcc_version ${CMAKE_MATCH_1})
    if(yoke_nvcc_version VERSION_LESS 13.0)
      # Older ones have no sm_103 or sm_121, or no C++20.
      if(YOKE_CUDA STREQUAL "ON")
        message(FATAL_ERROR "YOKE_CUDA=ON needs nvcc of CUDA 13; ${YOKE_NVCC} is ${yoke_nvcc_version}")
      endif()
      message(STATUS "No CUDA kernels: ${YOKE_NVCC} is ${yoke_nvcc_version}, older than 13.0")
      unset(YOKE_NVCC CACHE)
    else()
      list(LENGTH yoke_cuda_sources cuda_file_count)
      list(JOIN YOKE_CUDA_ARCHITECTURES ", " cuda_architectures)
      set(yoke_cuda_description
          "toolkit ${yoke_nvcc_version}, ${cuda_file_count} kernel files for sm_${cuda_architectures} and PTX")
    endif()
  elseif(YOKE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "YOKE_CUDA=ON but nvcc was not found: put it on PATH, or set CUDA_HOME")
  endif()
endif()
