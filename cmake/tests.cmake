# Tests lie beside the code: foo_test.cc goes to the test program of its folder, foo_fuzz.cc becomes a fuzzer of its
# own, foo_bench.cc goes to the one benchmark program. Whole-program tests are in tests/.
find_package(GTest REQUIRED)
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_ARCHIVE librapidcheck.a REQUIRED)
include(GoogleTest)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)

add_library(yoke_test_main STATIC tests/test_main.cc)
target_link_libraries(yoke_test_main PUBLIC yoke_lib GTest::gtest GTest::gmock ${RAPIDCHECK_ARCHIVE})
target_compile_definitions(yoke_test_main PUBLIC YOKE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" YOKE_PROGRAM="$<TARGET_FILE:yoke>")
target_precompile_headers(yoke_test_main PRIVATE cmake/precompiled_test.h)

function(yoke_add_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE yoke_test_main)
  target_precompile_headers(${name} REUSE_FROM yoke_test_main)
  target_link_options(${name} PRIVATE ${yoke_static_runtime})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(${name} yoke)
  # Suites LabTiming… measure what this machine does: nothing else runs beside them.
  gtest_discover_tests(${name} TEST_FILTER "-LabTiming*" NO_PRETTY_VALUES PROPERTIES TIMEOUT 300 DISCOVERY_TIMEOUT 60)
  gtest_discover_tests(${name} TEST_FILTER "LabTiming*" TEST_LIST ${name}_timing NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT 300 RUN_SERIAL TRUE DISCOVERY_TIMEOUT 60)
endfunction()

file(GLOB yoke_folders RELATIVE ${CMAKE_SOURCE_DIR}/yoke CONFIGURE_DEPENDS yoke/*)
foreach(folder ${yoke_folders})
  file(GLOB_RECURSE folder_tests CONFIGURE_DEPENDS yoke/${folder}/*_test.cc)
  if(folder_tests)
    yoke_add_test_program(${folder}_test ${folder_tests})
  endif()
endforeach()
# An emulated test cannot start an emulated program, so whole-program tests are native.
if(CMAKE_CROSSCOMPILING)
  target_compile_definitions(yoke_test_main PRIVATE YOKE_EMULATED)
else()
  file(GLOB program_tests CONFIGURE_DEPENDS tests/*_test.cc)
  yoke_add_test_program(program_test ${program_tests})
endif()

# A fuzzer is LLVMFuzzerTestOneInput over one parser. `make test` drives it by our own driver (any compiler, a fixed
# number of mutated inputs from a seed); `make soak` by libFuzzer.
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS yoke/*_fuzz.cc)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  set(corpus ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
  if(YOKE_LIBFUZZER)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${source} tests/fuzz_driver.cc)
    add_test(NAME Fuzz.${name} COMMAND ${name} ${corpus})
  endif()
  target_link_libraries(${name} PRIVATE yoke_lib)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endforeach()
