# The CUDA part of paceline_cuda.so: the own kernels, compiled by nvcc where there is a toolkit. For which GPUs, PACELINE_GPUS
# says: all (below, with PTX for what comes later), or here, this machine's alone, and none where it has none. Sets
#   PACELINE_CUDA_OBJECT       device.cu; empty without a toolkit, or without a GPU to build it for
#   PACELINE_CUDA_INCLUDE_DIR  CUDA's headers
#   PACELINE_CUDART_STATIC     the CUDA runtime as a static library
# and adds the target paceline_cuda_kernels. It leaves beside the object what tests/engine/cuda/kernels/ptx_test.py reads: the
# PTX, and device.ptxas.txt, what ptxas says of registers and spills. To be included where the module's target is.
# Not by enable_language(CUDA): that wants a toolkit on every machine, and the module has but one such file.
set(PACELINE_CUDA_OBJECT "")
set(PACELINE_GPUS all CACHE STRING "GPUs for which the CUDA module is built: all, or here")
if(NOT DEFINED CUDAToolkit_ROOT AND DEFINED ENV{CUDA_HOME})  # CMake itself knows of CUDA_PATH and /usr/local/cuda
  set(CUDAToolkit_ROOT $ENV{CUDA_HOME})
endif()
# What is built for other machines too takes CUDA 12 where it is installed: its programs run with drivers from 525 on, those of
# CUDA 13 from 580 on.
if(PACELINE_GPUS STREQUAL all AND NOT DEFINED CUDAToolkit_ROOT)
  foreach(version 12.8 12.9)
    if(EXISTS /usr/local/cuda-${version}/bin/nvcc)
      set(CUDAToolkit_ROOT /usr/local/cuda-${version})
    endif()
  endforeach()
endif()
find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT TARGET CUDA::cudart_static)
  message(STATUS "No CUDA toolkit (nvcc and the static runtime): this build cannot use GPUs")
  return()
elseif(CUDAToolkit_VERSION VERSION_LESS 12.8)
  message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION} is too old (12.8 is the least): this build cannot use GPUs")
  return()
endif()

# 8.6 and 8.9 run the code for 8.0, 10.3 that for 10.0, 12.1 that for 12.0.
set(targets)
foreach(gpu 75 80 100 120)
  list(APPEND targets -gencode arch=compute_${gpu},code=sm_${gpu})
endforeach()
list(APPEND targets -gencode arch=compute_90,code=[sm_90,compute_90])
if(PACELINE_GPUS STREQUAL here)
  include(${CMAKE_CURRENT_LIST_DIR}/gpus_here.cmake)
  paceline_gpus_here(gpus)
  if(gpus STREQUAL none)
    message(STATUS "No NVIDIA GPU here: the CUDA module is not built (./x build --all-gpus builds it)")
    return()
  elseif(NOT gpus STREQUAL unknown)
    set(targets)
    foreach(gpu ${gpus})
      list(APPEND targets -gencode arch=compute_${gpu},code=[sm_${gpu},compute_${gpu}])
    endforeach()
  endif()
endif()

set(kernels ${CMAKE_SOURCE_DIR}/src/engine/cuda/kernels)
set(output ${CMAKE_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${output})
file(GLOB headers CONFIGURE_DEPENDS ${kernels}/*.h)
# --fmad=false: no a * b + c in one rounding, so that a GPU computes the host's bits (the host's side: -ffp-contract=off).
add_custom_command(
  OUTPUT ${output}/device.o ${output}/device.ptxas.txt
  COMMAND sh -c "\"$@\" 2>device.ptxas.txt || { cat device.ptxas.txt >&2; exit 1; }" nvcc
          ${CUDAToolkit_NVCC_EXECUTABLE} -c ${kernels}/device.cu -o device.o -std=c++17 -O3 --fmad=false
          -ccbin ${CMAKE_CXX_COMPILER} -I ${CMAKE_SOURCE_DIR}/src -Xcompiler -fPIC,-ffp-contract=off -Xptxas -v
          --threads 2 --keep --keep-dir ${output} ${targets}
  DEPENDS ${kernels}/device.cu ${headers}
  WORKING_DIRECTORY ${output} COMMENT "Compiling the CUDA kernels" VERBATIM)
set(PACELINE_CUDA_OBJECT ${output}/device.o)
add_custom_target(paceline_cuda_kernels ALL DEPENDS ${PACELINE_CUDA_OBJECT})
list(GET CUDAToolkit_INCLUDE_DIRS 0 PACELINE_CUDA_INCLUDE_DIR)
get_target_property(PACELINE_CUDART_STATIC CUDA::cudart_static IMPORTED_LOCATION)
