# ccache only caches a translation unit with a precompiled header if it may ignore the header's
# time stamps and macros; it then hashes the content of the precompiled file instead.
find_program(PIPEWRIGHT_CCACHE ccache)
if(PIPEWRIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${PIPEWRIGHT_CCACHE})
endif()
