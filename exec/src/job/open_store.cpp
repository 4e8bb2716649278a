#include "open_store.hpp"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "crypto.hpp"
#include "forwarded.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/job/job.hpp"
#include "sockets.hpp"
#include "store_client.hpp"

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

/// Connects to a store without authentication, or opens it if this process is its `host`.
Store open_connection(const JobEnvironment& environment, milliseconds timeout, bool host) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.port);
  options.isServer = host;
  if (FileDescriptor launchers = host ? forwarded(variable_of_socket) : FileDescriptor())
    options.masterListenFd = launchers.release();
  options.waitWorkers = false;  // Job names the ranks that are missing
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(environment.address, options);
}

/// Signs the port of the job's own store, because any process may write into a launcher's store.
std::string signed_port(const JobEnvironment& environment, const std::string& port) {
  return port + " " +
         to_hex(hmac_sha256(environment.secret, "port" + environment.attempt + " " + port));
}

}  // namespace

std::string place_of(const JobEnvironment& environment) {
  return fmt::format("{}:{}", environment.address, environment.port);
}

void prepare_process() {
  // Makes a write to a dead peer fail instead of ending this process.
  std::signal(SIGPIPE, SIG_IGN);
  // c10d warns with pages of stack traces; the job's own reports say the same in one line.
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
            : Store(c10::make_intrusive<StoreClient>(
                  StoreClient::Place{environment.address, environment.port, environment.secret},
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
    FileDescriptor listening = forwarded(variable_of_socket);
    if (!listening)
      listening = listen_on("", environment.launcher_hosts_store ? 0 : environment.port);
    return std::make_shared<StoreServer>(std::move(listening), environment.secret);
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
      launchers->set(key, signed_port(environment, std::to_string(own_port)));
    std::string port;
    for (std::string value; port.empty(); std::this_thread::sleep_for(between_looks)) {
      value = launchers->get_to_str(key);
      const std::string claimed = value.substr(0, value.find(' '));
      if (equal_in_constant_time(value, signed_port(environment, claimed)))
        port = claimed;
      else if (std::chrono::steady_clock::now() > until)
        throw std::runtime_error(
            "the port of the job's store in the launcher's store was not written by a rank with "
            "the job's secret");
    }
    environment.port = std::stoi(port);
    environment.launcher_hosts_store = false;
  } catch (const std::exception& error) {
    fail_at_store(environment, "find", timeout, error);
  }
}

}  // namespace pipewright::exec
