# What `yoke version` says of this build. The commit is looked up at every build, the file rewritten only when it changed.
set(yoke_build_info_arguments
    -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/build_info.cc -DVERSION=${PROJECT_VERSION}
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
    "-DSANITIZE=${YOKE_SANITIZE}" "-DPROCESSOR=${CMAKE_SYSTEM_PROCESSOR}" "-DCUDA=${yoke_cuda_description}"
    -P ${CMAKE_SOURCE_DIR}/cmake/build_info.cmake)
add_custom_target(build_info ALL COMMAND ${CMAKE_COMMAND} ${yoke_build_info_arguments}
                  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/build_info.cc VERBATIM COMMENT "Looking up the commit")
