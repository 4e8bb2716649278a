#include "pipewright/exec/job/job.hpp"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "coming_together.hpp"
#include "first_line.hpp"
#include "keys.hpp"
#include "no_timeout.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "store_socket.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

using Store = Watch::Store;

std::string place_of(const JobEnvironment& environment) {
  return fmt::format("{}:{}", environment.address, environment.port);
}

/// What a process has to do before it talks to others that may die.
void prepare_process() {
  // A write to a dead peer shall be an error of that write, not our end.
  std::signal(SIGPIPE, SIG_IGN);
  // What c10d warns of, with pages of stack traces, is what the reports here say in a line.
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr)
    FLAGS_caffe2_log_level = c10::GLOG_ERROR;
}

/// A connection to the store; with `host`, the store itself.
Store connect(const JobEnvironment& environment, std::chrono::milliseconds timeout, bool host) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.port);
  options.isServer = host;
  if (host)
    options.masterListenFd = socket_of_launcher();
  options.waitWorkers = false;  // who has not come is said below
  options.timeout = timeout;
  try {
    const Store store = c10::make_intrusive<c10d::TCPStore>(environment.address, options);
    return c10::make_intrusive<c10d::PrefixStore>("pipewright/" + environment.attempt, store);
  } catch (const std::exception& error) {
    throw JobFailure(fmt::format("rank {} cannot {} the job's store at {} within {}: {}",
                                 environment.rank, host ? "open" : "reach", place_of(environment),
                                 in_seconds(timeout), first_line(error.what())));
  }
}

std::vector<int> missing_ranks(c10d::Store& store, int size) {
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank)
    if (!store.check({keys::beat(rank)}))
      missing.push_back(rank);
  return missing;
}

/// Posts a first beat and waits for those of all others.
void meet(c10d::Store& store, const JobEnvironment& environment,
          std::chrono::milliseconds timeout) {
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
    throw JobFailure(fmt::format("{} of {} did not join the job at {} within {}",
                                 ranks_text(missing), environment.size, place_of(environment),
                                 in_seconds(timeout)));
}

}  // namespace

Job::Job(JobEnvironment environment, JobOptions options)
    : environment_(std::move(environment)), options_(std::move(options)) {
  prepare_process();
  const Store beats = connect(environment_, options_.join_timeout, environment_.hosts_store());
  try {
    meet(*beats, environment_, options_.join_timeout);
  } catch (const c10::DistError& error) {
    throw JobFailure(fmt::format("rank {} has lost the job's store at {}: {}", environment_.rank,
                                 place_of(environment_), first_line(error.what())));
  }
  has_come_together();
  const Store calls = connect(environment_, options_.join_timeout, false);
  calls->setTimeout(no_timeout);
  watch_ = std::make_unique<Watch>(
      Watch::Site{environment_.rank, environment_.size, place_of(environment_),
                  environment_.launcher_hosts_store ? -1 : 0, options_.timeout, options_.stall,
                  options_.when_stuck},
      beats, calls);
}

Job::~Job() = default;

void Job::doing(const plan::Instruction& instruction) {
  watch_->doing(fused_ ? activity_of(*fused_, instruction) : activity_of(instruction));
  fused_.reset();
  if (instruction.fused_with_next)
    fused_ = instruction;
}
void Job::doing(const char* phase) { watch_->doing(activity_of(phase)); }
void Job::abort(const std::string& why) { watch_->abort(why); }
void Job::require_going() const { watch_->require_going(); }
bool Job::reports_failure() const { return watch_->reports_failure(); }

}  // namespace pipewright::exec
