# Compiler options that every target of ours shares.
add_library(yoke_options INTERFACE)
target_include_directories(yoke_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(yoke_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       -Wno-missing-field-initializers)  # designated initializers leave the rest at its default
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these through libstdc++'s strings and RapidCheck's shared pointers.
  target_compile_options(yoke_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
# Products and sums are rounded each, on every processor: results do not depend on whether it can fuse them, and what is
# subtracted from itself is zero. Kernels that want fused arithmetic say so by intrinsics.
target_compile_options(yoke_options INTERFACE -ffp-contract=off)
# Paths in messages of YOKE_CHECK and of the compiler's own start at the repository, whoever builds it.
target_compile_options(yoke_options INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(YOKE_SANITIZE)
  target_compile_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE})
  # The sanitizers' run-time libraries are shared: a sanitized program is not one file, and does not claim to be.
  set(yoke_static_runtime "")
endif()
