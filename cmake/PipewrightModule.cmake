include(PipewrightWarnings)

# pipewright_add_module(plan) makes the static library pipewright::plan from the folder it is called
# in. That folder adds the link line, which lists what the module may include. WITHOUT names folders
# in src to leave out: optional parts. PCH is the precompiled header to use.
#
# Each translation unit instantiates the templates of its headers again (LibTorch's take 8 s), so
# neighboring sources are compiled together, UNITY at a time or 30: their names in unnamed
# namespaces must differ.
function(pipewright_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH;UNITY" "WITHOUT")
  if(NOT arg_UNITY)
    set(arg_UNITY 30)
  endif()
  set(target pipewright_${name})
  # A folder is a target and contains all its sources, so a manual list would only repeat `ls`.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp")
  foreach(folder IN LISTS arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/src/${folder}/")
  endforeach()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/include/*.hpp")

  add_library(${target} STATIC ${sources})
  add_library(pipewright::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}/include" FILES ${headers})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${PIPEWRIGHT_UNITY} UNITY_BUILD_BATCH_SIZE ${arg_UNITY})
  pipewright_set_warnings(${target})
  pipewright_use_pch(${target} ${arg_PCH})
endfunction()
