# The only list of warnings. LibTorch and other libraries are system includes, so it applies only to
# our code.
function(pipewright_set_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual)
  # Sources that are compiled together share their file-scope names, which local variables may hide.
  if(PIPEWRIGHT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wshadow=local)
  else()
    target_compile_options(${target} PRIVATE -Wshadow)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False positives of GCC 12 for appending to a std::string (GCC bug 105329 and similar).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PIPEWRIGHT_SANITIZE)
    # Instrumented code confuses GCC's data flow analysis: it warns about variables that are set.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PIPEWRIGHT_SANITIZE MATCHES "thread")
    # SimGrid's reference counts use fences, which the sanitizer does not see. Its engine is
    # single-threaded.
    target_compile_options(${target} PRIVATE -Wno-tsan)
  endif()
  if(PIPEWRIGHT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
