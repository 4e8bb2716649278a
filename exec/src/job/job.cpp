#include "pipewright/exec/job/job.hpp"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "coming_together.hpp"
#include "first_line.hpp"
#include "keys.hpp"
#include "no_timeout.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/log.hpp"
#include "sha256.hpp"
#include "store_of_secret.hpp"
#include "store_socket.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;
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

[[noreturn]] void fail_at_store(const JobEnvironment& environment, const char* cannot,
                                milliseconds timeout, const std::exception& error) {
  throw JobFailure(fmt::format("rank {} cannot {} the job's store at {} within {}: {}",
                               environment.rank, cannot, place_of(environment), in_seconds(timeout),
                               first_line(error.what())));
}

/// A connection to a store that whoever connects may write; with `host`, that store itself.
Store open_connection(const JobEnvironment& environment, milliseconds timeout, bool host) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.port);
  options.isServer = host;
  if (host)
    options.masterListenFd = socket_of_launcher();
  options.waitWorkers = false;  // who has not come is said below
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(environment.address, options);
}

Store connect(const JobEnvironment& environment, milliseconds timeout,
              const std::shared_ptr<StoreServer>& server, bool first) {
  const bool host = first && environment.hosts_store();
  try {
    const Store store =
        environment.secret.empty()
            ? open_connection(environment, timeout, host)
            : Store(c10::make_intrusive<StoreOfSecret>(
                  StoreOfSecret::Place{environment.address, environment.port, environment.secret},
                  timeout, server));
    return c10::make_intrusive<c10d::PrefixStore>("pipewright/" + environment.attempt, store);
  } catch (const std::exception& error) {
    fail_at_store(environment, host ? "open" : "reach", timeout, error);
  }
}

/// On the rank that hosts the store of a job with a secret.
std::shared_ptr<StoreServer> opened_server(const JobEnvironment& environment,
                                           milliseconds timeout) {
  if (environment.secret.empty() || environment.rank != 0)
    return nullptr;
  try {
    const auto launchers = socket_of_launcher();
    return std::make_shared<StoreServer>(
        launchers ? *launchers
                  : listen_everywhere(environment.launcher_hosts_store ? 0 : environment.port),
        environment.secret);
  } catch (const std::exception& error) {
    fail_at_store(environment, "open", timeout, error);
  }
}

/// A launcher's store knows no secret, so of what stands in it a job with one believes a single
/// word: where rank 0 has the job's own store, with a proof.
std::string proven_port(const JobEnvironment& environment, const std::string& port) {
  return port + " " +
         in_hex(hmac_sha256(environment.secret, "port" + environment.attempt + " " + port));
}

void move_to_own_store(JobEnvironment& environment, milliseconds timeout, int own_port) {
  constexpr milliseconds between_looks{100};
  const auto until = std::chrono::steady_clock::now() + timeout;
  const std::string key = "pipewright/" + environment.attempt + "/port";
  try {
    const Store launchers = open_connection(environment, timeout, false);
    if (environment.rank == 0)
      launchers->set(key, proven_port(environment, std::to_string(own_port)));
    std::string port;
    for (std::string told; port.empty(); std::this_thread::sleep_for(between_looks)) {
      told = launchers->get_to_str(key);
      if (equal_proofs(told, proven_port(environment, told.substr(0, told.find(' ')))))
        port = told.substr(0, told.find(' '));
      else if (std::chrono::steady_clock::now() > until)
        throw std::runtime_error(
            "what the launcher's store says of the job's own is not from a rank with its secret");
    }
    environment.port = std::stoi(port);
    environment.launcher_hosts_store = false;
  } catch (const std::exception& error) {
    fail_at_store(environment, "find", timeout, error);
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
        server != nullptr && server->turned_away() > 0
            ? fmt::format("; without the job's secret {} have come", server->turned_away())
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
  if (environment_.launcher_hosts_store && !environment_.secret.empty())
    move_to_own_store(environment_, options_.join_timeout, server ? server->port() : 0);
  const Store beats = connect(environment_, options_.join_timeout, server, /*first=*/true);
  try {
    meet(*beats, environment_, options_.join_timeout, server.get());
  } catch (const c10::DistError& error) {
    throw JobFailure(fmt::format("rank {} has lost the job's store at {}: {}", environment_.rank,
                                 place_of(environment_), first_line(error.what())));
  }
  has_come_together();
  log(LogSubject::Job, LogLevel::Info, "all ranks have come");
  const Store calls = connect(environment_, options_.join_timeout, server, /*first=*/false);
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
void Job::abort(const std::string& why) {
  log(LogSubject::Job, LogLevel::Info, "ends the job: {}", why);
  watch_->abort(why);
}
void Job::require_going() const { watch_->require_going(); }
bool Job::reports_failure() const { return watch_->reports_failure(); }
void Job::tell(std::string note) { watch_->tell(std::move(note)); }
std::vector<std::string> Job::told() const { return watch_->told(); }

}  // namespace pipewright::exec
