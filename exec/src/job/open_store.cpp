#include "open_store.hpp"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "first_line.hpp"
#include "pipewright/exec/job/job.hpp"
#include "sha256.hpp"
#include "store_of_secret.hpp"
#include "store_socket.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;

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

/// A launcher's store knows no secret, so of what stands in it a job with one believes a single
/// word: where rank 0 has the job's own store, with a proof.
std::string proven_port(const JobEnvironment& environment, const std::string& port) {
  return port + " " +
         in_hex(hmac_sha256(environment.secret, "port" + environment.attempt + " " + port));
}

}  // namespace

std::string place_of(const JobEnvironment& environment) {
  return fmt::format("{}:{}", environment.address, environment.port);
}

void prepare_process() {
  // A write to a dead peer shall be an error of that write, not our end.
  std::signal(SIGPIPE, SIG_IGN);
  // What c10d warns of, with pages of stack traces, is what the reports here say in a line.
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr)
    FLAGS_caffe2_log_level = c10::GLOG_ERROR;
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

void move_to_own_store(JobEnvironment& environment, milliseconds timeout, int own_port) {
  if (!environment.launcher_hosts_store || environment.secret.empty())
    return;
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

}  // namespace pipewright::exec
