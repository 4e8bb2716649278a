# Installs the build into an empty prefix and lets separate projects find it, link it and run.
# cmake -D build_dir=… -D work_dir=… -D generator=… -D compiler=… -D torch=… -P check.cmake
# torch: the wheel's folder; empty if the build does not use LibTorch.
#
# A step that succeeds prints one line with its seconds. A step that fails prints all its output,
# and the last line names the step. Each step has a time limit, shorter than the test's, so that a
# hang is named as well.
set(prefix "${work_dir}/prefix")
set(step_limit_s 240)
file(REMOVE_RECURSE "${work_dir}")

# run(STEP COMMAND…) sets `printed` to the command's output.
function(run step)
  string(TIMESTAMP begin "%s")
  execute_process(COMMAND ${ARGN} TIMEOUT ${step_limit_s}
                  RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(TIMESTAMP end "%s")
  math(EXPR seconds "${end} - ${begin}")
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message("${out}\n${err}")
    message(FATAL_ERROR "${step}: FAILED after ${seconds} s (${result}): ${command}")
  endif()
  message(STATUS "${step}: ${seconds} s")
  set(printed "${out}" PARENT_SCOPE)
endfunction()

# build(PROJECT OPTION…): builds the project in the folder of that name here, against the prefix.
function(build project)
  set(folder "${work_dir}/${project}")
  run("configure the ${project}" ${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}/${project}" -B "${folder}"
      -G "${generator}" -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix} ${ARGN})
  run("build the ${project}" ${CMAKE_COMMAND} --build "${folder}")
endfunction()

run("install" ${CMAKE_COMMAND} --install "${build_dir}" --prefix "${prefix}")

build(consumer)
run("run the consumer" "${work_dir}/consumer/consumer")
if(NOT printed MATCHES "0F0")
  message(FATAL_ERROR "The consumer's schedule has no 0F0:\n${printed}")
endif()

# Another project declares its own model and has all commands: it measures, plans, predicts, trains,
# compares and draws. expect(PATTERN): checks the last step's output.
function(expect pattern)
  if(NOT printed MATCHES "${pattern}")
    message(FATAL_ERROR "The trainer did not say \"${pattern}\":\n${printed}")
  endif()
endfunction()
if(torch)
  build(trainer -D PIPEWRIGHT_TORCH_DIR=${torch})
  set(trainer "${work_dir}/trainer/trainer")
  set(waves "${CMAKE_CURRENT_LIST_DIR}/trainer/waves.json")
  run("profile" ${trainer} profile ${waves} -o ${work_dir}/costs.json --over 0)
  run("partition by measured cost" ${trainer} partition --costs ${work_dir}/costs.json --parts 2)
  run("predict and draw" ${trainer} simulate ${waves} --costs ${work_dir}/costs.json --svg ${work_dir}/predicted.svg)
  run("run" ${trainer} run ${waves} -o ${work_dir}/run --verify)
  expect("3 of 3 losses")
  run("compare" ${trainer} compare ${work_dir}/run/predicted.trace.json ${work_dir}/run/measured.trace.json)
  run("train as processes" ${trainer} train ${waves} --costs ${work_dir}/costs.json --processes --verify)
  expect("3 of 3 losses")
  foreach(file IN ITEMS predicted.svg run/report.json)
    if(NOT EXISTS "${work_dir}/${file}")
      message(FATAL_ERROR "The trainer left no ${file}")
    endif()
  endforeach()
endif()

# The installed program has its own rpath.
run("run the installed program" "${prefix}/bin/pipewright" --help)

foreach(page IN ITEMS bash-completion/completions/pipewright zsh/site-functions/_pipewright
                      fish/vendor_completions.d/pipewright.fish man/man1/pipewright.1)
  if(NOT EXISTS "${prefix}/share/${page}")
    message(FATAL_ERROR "share/${page} was not installed")
  endif()
endforeach()
