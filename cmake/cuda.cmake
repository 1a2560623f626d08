# Kernels: each .cu file becomes a fat binary, with machine code for every architecture and PTX for later ones, which the
# program carries in itself (cmake/embed_files.cmake) and loads through the driver. The host's compiler sees none of it.
set(yoke_kernel_files "")
if(YOKE_NVCC)
  set(code "")
  foreach(architecture ${YOKE_CUDA_ARCHITECTURES})
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET YOKE_CUDA_ARCHITECTURES 0 oldest)
  list(APPEND code -gencode arch=compute_${oldest},code=compute_${oldest})
  file(GLOB_RECURSE yoke_cuda_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/yoke/*.cuh)
  foreach(source ${yoke_cuda_sources})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    set(image ${CMAKE_BINARY_DIR}/generated/kernels/${name}.fatbin)
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated/kernels
      COMMAND ${YOKE_NVCC} -std=c++20 -O3 -fatbin ${code} -I${CMAKE_SOURCE_DIR} --expt-relaxed-constexpr
              --compress-mode=size -Werror all-warnings -o ${image} ${source}
      DEPENDS ${source} ${yoke_cuda_headers} ${folder}/layout.h
      VERBATIM COMMENT "Compiling kernels of ${name}.cu")
    list(APPEND yoke_kernel_files ${image})
  endforeach()
endif()
