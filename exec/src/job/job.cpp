#include "pipewright/exec/job/job.hpp"

#include <fmt/format.h>

#include <memory>

#include "forwarded.hpp"
#include "keys.hpp"
#include "no_timeout.hpp"
#include "open_store.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/log.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;

std::vector<int> missing_ranks(c10d::Store& store, int size) {
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank)
    if (!store.check({keys::beat(rank)}))
      missing.push_back(rank);
  return missing;
}

/// Posts a first heartbeat and waits for those of all other ranks.
void meet(c10d::Store& store, const JobEnvironment& environment, milliseconds timeout,
          const StoreServer* server) {
  store.compareSet(keys::failure, "", keys::no_failure);
  store.set(keys::beat(environment.rank), to_text({.count = 0, .at = "its start", .waits = {}}));
  std::vector<std::string> all;
  for (int rank = 0; rank < environment.size; ++rank)
    all.push_back(keys::beat(rank));
  try {
    return store.wait(all, timeout);
  } catch (const c10::DistStoreError&) {  // the time is up
  }
  const std::vector<int> missing = missing_ranks(store, environment.size);
  if (!missing.empty())
    throw JobFailure(fmt::format(
        "{} of {} did not join the job at {} within {}{}", ranks_text(missing), environment.size,
        place_of(environment), in_seconds(timeout),
        server != nullptr && server->rejected() > 0
            ? fmt::format("; connections without the job's secret: {}", server->rejected())
            : ""));
}

}  // namespace

Job::Job(JobEnvironment environment, JobOptions options)
    : environment_(std::move(environment)), options_(std::move(options)) {
  prepare_process();
  log_as_rank(environment_.rank);
  log(LogSubject::Job, LogLevel::Info, "joins {} ranks at {} ({})", environment_.size,
      place_of(environment_), environment_.launcher);
  const auto server = opened_server(environment_, options_.join_timeout);
  move_to_own_store(environment_, options_.join_timeout, server ? server->port() : 0);
  const auto beats = connect(environment_, options_.join_timeout, server, /*first=*/true);
  try {
    meet(*beats, environment_, options_.join_timeout, server.get());
  } catch (const c10::DistError& error) {
    throw JobFailure(fmt::format("rank {} has lost the job's store at {}: {}", environment_.rank,
                                 place_of(environment_), first_line(error.what())));
  }
  log(LogSubject::Job, LogLevel::Info, "all ranks have come");
  const auto calls = connect(environment_, options_.join_timeout, server, /*first=*/false);
  calls->setTimeout(no_timeout);
  watch_ = std::make_unique<Watch>(
      Watch::Site{environment_.rank, environment_.size, place_of(environment_),
                  environment_.launcher_hosts_store ? -1 : 0, options_.timeout, options_.stall,
                  options_.when_stuck},
      beats, calls);
  forwarded(variable_of_rendezvous);  // closes the pipe: this rank now notices lost ranks itself
}

Job::~Job() = default;

void Job::doing(const plan::Instruction& instruction) {
  watch_->doing(fused_ ? activity_of(*fused_, instruction) : activity_of(instruction));
  fused_.reset();
  if (instruction.fused_with_next)
    fused_ = instruction;
}
void Job::doing(const char* phase) { watch_->doing(activity_of(phase)); }
void Job::abort(const std::string& why) {
  log(LogSubject::Job, LogLevel::Info, "ends the job: {}", why);
  watch_->abort(why);
}
void Job::require_going() const { watch_->require_going(); }
bool Job::reports_failure() const { return watch_->reports_failure(); }
void Job::tell(std::string note) { watch_->tell(std::move(note)); }
std::vector<std::string> Job::told() const { return watch_->told(); }

}  // namespace pipewright::exec
