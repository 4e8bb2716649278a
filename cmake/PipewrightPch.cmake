# Precompiled headers, each built once and shared by targets with pipewright_use_pch(target pch).
# GCC accepts one only for a target that is compiled with the same flags (-Winvalid-pch reports it).

# pipewright_add_pch(pch header LINK libraries OPTIONS flags)
function(pipewright_add_pch pch header)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LINK;OPTIONS")
  if(NOT PIPEWRIGHT_PCH)
    return()
  endif()
  file(CONFIGURE OUTPUT ${pch}.cpp CONTENT "" @ONLY)  # CMake attaches the header to a source
  add_library(pipewright_${pch} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${pch}.cpp")
  pipewright_set_warnings(pipewright_${pch})  # some, such as -Wpedantic, must be equal too
  target_compile_options(pipewright_${pch} PRIVATE ${arg_OPTIONS})
  pipewright_pch_flags(pipewright_${pch} ${pch})
  target_link_libraries(pipewright_${pch} PRIVATE ${arg_LINK})
  target_precompile_headers(pipewright_${pch} PRIVATE "${header}")
endfunction()

function(pipewright_use_pch target pch)
  pipewright_pch_flags(${target} ${pch})
  if(PIPEWRIGHT_PCH)
    target_precompile_headers(${target} REUSE_FROM pipewright_${pch})
  endif()
endfunction()

# Sets the flags that a precompiled header and its targets share.
# - Code without LibTorch can be part of the Python module: it is position-independent, and calls
#   within the module are as direct as in a program.
# - Code with LibTorch leaves arithmetic to it, and most of its compile time is the optimization of
#   templates from headers: -O1 saves a fifth of it.
function(pipewright_pch_flags target pch)
  if(pch STREQUAL "values")
    target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition)
  elseif(pch STREQUAL "tensors" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
