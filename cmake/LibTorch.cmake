# pipewright::libtorch, from the torch wheel. find_package(Torch) of that wheel demands a CUDA compiler
# even to build CPU code, so its libraries are imported here by name.
if(NOT PIPEWRIGHT_TORCH_DIR)
  file(GLOB torch_dirs "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  list(POP_FRONT torch_dirs torch_dir)
  set(PIPEWRIGHT_TORCH_DIR "${torch_dir}" CACHE PATH "Folder `torch` of an installed wheel" FORCE)
endif()
if(NOT EXISTS "${PIPEWRIGHT_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch not found in .venv: run ./dev setup "
                      "(or pass -DPIPEWRIGHT_TORCH_DIR=<site-packages>/torch)")
endif()

# The wheel also contains headers of fmt 12. The system's headers must come first, in LibTorch's
# headers too, because the system's fmt is linked. This folder contains only a link to them.
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
set(fmt_first "${CMAKE_CURRENT_BINARY_DIR}/fmt-before-libtorch")
file(MAKE_DIRECTORY "${fmt_first}")
file(CREATE_LINK "${fmt_include}/fmt" "${fmt_first}/fmt" SYMBOLIC)

add_library(pipewright_c10 SHARED IMPORTED)
set_target_properties(pipewright_c10 PROPERTIES
  IMPORTED_LOCATION "${PIPEWRIGHT_TORCH_DIR}/lib/libc10.so")

# libtorch_cpu.so finds its CUDA libraries by its own RPATH, at link time and at run time, so the
# programs need only its folder, which CMake puts into their rpath. No CUDA driver is needed.
add_library(pipewright_torch_cpu SHARED IMPORTED)
set_target_properties(pipewright_torch_cpu PROPERTIES
  IMPORTED_LOCATION "${PIPEWRIGHT_TORCH_DIR}/lib/libtorch_cpu.so")

add_library(pipewright::libtorch INTERFACE IMPORTED)
target_include_directories(pipewright::libtorch SYSTEM INTERFACE
  "${fmt_first}"
  "${PIPEWRIGHT_TORCH_DIR}/include"
  "${PIPEWRIGHT_TORCH_DIR}/include/torch/csrc/api/include")
# As the wheel was built: without the first two, its headers omit the process groups.
target_compile_definitions(pipewright::libtorch INTERFACE
  USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1)
target_link_libraries(pipewright::libtorch INTERFACE pipewright_torch_cpu pipewright_c10 fmt::fmt)

# For a CUDA wheel: its small library for streams and memory, and the headers of CUDA and NCCL,
# which are in separate wheels. The large libraries are loaded by name, from the same folders.
if(EXISTS "${PIPEWRIGHT_TORCH_DIR}/lib/libc10_cuda.so")
  cmake_path(GET PIPEWRIGHT_TORCH_DIR PARENT_PATH site_packages)
  set(cuda_include "${site_packages}/nvidia/cu13/include")
  set(nccl_include "${site_packages}/nvidia/nccl/include")

  # Checks all headers that our sources and LibTorch's headers include, in the wheels' own folders.
  # An installed CUDA toolkit would hide an incomplete wheel on this machine, but not on others.
  function(pipewright_require_headers wheel)
    foreach(header IN LISTS ARGN)
      if(NOT EXISTS "${header}")
        message(FATAL_ERROR "${header} is missing: the wheel ${wheel} is not installed. "
                            "Run ./dev setup, or pip install -r requirements.txt")
      endif()
    endforeach()
  endfunction()
  pipewright_require_headers(nvidia-cuda-runtime "${cuda_include}/cuda.h"
    "${cuda_include}/cuda_runtime.h" "${cuda_include}/cuda_runtime_api.h"
    "${cuda_include}/cuda_fp16.h" "${cuda_include}/cuda_bf16.h" "${cuda_include}/cuda_fp8.h")
  pipewright_require_headers(nvidia-cuda-crt
    "${cuda_include}/crt/host_config.h" "${cuda_include}/crt/host_defines.h")
  pipewright_require_headers(nvidia-cuda-cccl "${cuda_include}/cccl/nv/target")
  pipewright_require_headers(nvidia-nccl-cu13 "${nccl_include}/nccl.h")

  add_library(pipewright_c10_cuda SHARED IMPORTED)
  set_target_properties(pipewright_c10_cuda PROPERTIES
    IMPORTED_LOCATION "${PIPEWRIGHT_TORCH_DIR}/lib/libc10_cuda.so")
  add_library(pipewright::cuda_headers INTERFACE IMPORTED)
  target_include_directories(pipewright::cuda_headers SYSTEM INTERFACE
    "${cuda_include}" "${cuda_include}/cccl" "${nccl_include}")
  target_link_libraries(pipewright::cuda_headers INTERFACE pipewright_c10_cuda ${CMAKE_DL_LIBS})

  # Without it only the profiler is limited: it then has only the host's clock.
  if(EXISTS "${cuda_include}/cupti.h")
    add_library(pipewright::cupti_headers INTERFACE IMPORTED)
    target_link_libraries(pipewright::cupti_headers INTERFACE pipewright::cuda_headers)
  endif()
endif()
