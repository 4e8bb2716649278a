#include "pipewright/exec/job/wait_as_spare.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "forwarded.hpp"
#include "keys.hpp"
#include "open_store.hpp"
#include "pipewright/exec/first_line.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

/// The longest time of one call to the store, which is then repeated.
constexpr std::chrono::minutes one_wait{1};

void await_done(c10d::Store& store) {
  while (true) {
    try {
      return store.wait({keys::done}, one_wait);
    } catch (const c10::DistStoreError&) {  // the time is up
    }
  }
}

}  // namespace

void leave_job_to_first(int ranks) {
  setenv(variable_of_ranks, std::to_string(ranks).c_str(), /*overwrite=*/1);
}

void tell_done(Job& job) { job.watch().tell_done(); }

void wait_as_spare(JobEnvironment environment, std::chrono::milliseconds join_timeout) {
  prepare_process();
  move_to_own_store(environment, join_timeout, 0);
  const auto store = connect(environment, join_timeout, nullptr, /*first=*/false);
  try {
    await_done(*store);
  } catch (const c10::DistError& error) {
    throw JobFailure(
        fmt::format("standby process {} ends, because the job ended before its work was done: its "
                    "store at {} is gone ({})",
                    environment.rank, place_of(environment), first_line(error.what())));
  }
}

}  // namespace pipewright::exec
