include(PipewrightWarnings)

# pipewright_add_module(plan) makes the static library pipewright::plan from the folder it is called in.
# The link line is left to that folder: it is the list of what the module may include. WITHOUT names
# folders in src that are left out: optional parts.
function(pipewright_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "WITHOUT")
  set(target pipewright_${name})
  # A folder is a target, so every source in it belongs to it: a list by hand would only repeat `ls`.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp")
  foreach(folder IN LISTS arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/src/${folder}/")
  endforeach()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/include/*.hpp")

  add_library(${target} STATIC ${sources})
  add_library(pipewright::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}/include" FILES ${headers})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
  pipewright_set_warnings(${target})
endfunction()

# Headers that most sources of a target include and that take seconds to read.
function(pipewright_precompile target)
  if(PIPEWRIGHT_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # ccache preprocesses first; with this the output still names the precompiled header.
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()
