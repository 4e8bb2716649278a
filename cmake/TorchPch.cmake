# One precompiled LibTorch header, made once and shared by every target with
# pipewright_use_torch_pch(target). GCC takes it only if the targets are compiled with the same flags,
# which is why the flags are set for the whole build and not per target (-Winvalid-pch reports it).
if(PIPEWRIGHT_PCH)
  file(CONFIGURE OUTPUT torch_pch.cpp CONTENT "" @ONLY)  # CMake attaches the header to a source
  add_library(pipewright_torch_pch OBJECT "${CMAKE_CURRENT_BINARY_DIR}/torch_pch.cpp")
  pipewright_set_warnings(pipewright_torch_pch)  # some of them, such as -Wpedantic, must agree too
  target_link_libraries(pipewright_torch_pch PRIVATE pipewright::libtorch)
  target_precompile_headers(pipewright_torch_pch PRIVATE "${CMAKE_CURRENT_LIST_DIR}/torch_pch.hpp")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache preprocesses first; with this the output still names the precompiled header.
    target_compile_options(pipewright_torch_pch PRIVATE -fpch-preprocess)
  endif()
endif()

function(pipewright_use_torch_pch target)
  if(PIPEWRIGHT_PCH)
    target_precompile_headers(${target} REUSE_FROM pipewright_torch_pch)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()
