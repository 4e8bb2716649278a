# Installs the build into an empty prefix and lets a project of its own find it, link it and run.
# cmake -D build_dir=… -D work_dir=… -D generator=… -D compiler=… -D torch=… -D scenario=… -P check.cmake
# torch: the wheel's folder; empty where nothing was built with it.
set(prefix "${work_dir}/prefix")
set(consumer_build "${work_dir}/consumer")
file(REMOVE_RECURSE "${work_dir}")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install "${build_dir}" --prefix "${prefix}")
run(${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${consumer_build}" -G "${generator}"
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build "${consumer_build}")

execute_process(COMMAND "${consumer_build}/consumer" OUTPUT_VARIABLE grid COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "The consumer prints:\n${grid}")
if(NOT grid MATCHES "0F0")
  message(FATAL_ERROR "The consumer's schedule has no 0F0")
endif()

# Another one trains.
if(torch)
  set(trainer_build "${work_dir}/trainer")
  run(${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}/trainer" -B "${trainer_build}" -G "${generator}"
      -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix} -D PIPEWRIGHT_TORCH_DIR=${torch})
  run(${CMAKE_COMMAND} --build "${trainer_build}")
  execute_process(COMMAND "${trainer_build}/trainer" "${scenario}" "${work_dir}/run"
                  OUTPUT_VARIABLE verdict COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "The trainer prints:\n${verdict}")
  if(NOT verdict MATCHES "3 of 3 losses" OR NOT EXISTS "${work_dir}/run/report.json")
    message(FATAL_ERROR "The trainer did not train, or left no report")
  endif()
endif()

# The installed program has an rpath of its own.
if(EXISTS "${prefix}/bin/pipewright")
  run("${prefix}/bin/pipewright" --help)
endif()

foreach(page IN ITEMS bash-completion/completions/pipewright zsh/site-functions/_pipewright
                      fish/vendor_completions.d/pipewright.fish man/man1/pipewright.1)
  if(EXISTS "${prefix}/bin/pipewright" AND NOT EXISTS "${prefix}/share/${page}")
    message(FATAL_ERROR "share/${page} was not installed")
  endif()
endforeach()
