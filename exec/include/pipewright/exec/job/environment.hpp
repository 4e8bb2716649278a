#pragma once

// Where a process stands in its job, as the launcher's environment variables say it.

#include <functional>
#include <optional>
#include <string>

namespace pipewright::exec {

/// This process in the job that its launcher describes.
struct JobEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // among the ranks of this node
  std::string address;  // of the job's store
  int port = 0;         // of the job's store
  bool launcher_hosts_store = false;
  std::string launcher;       // torchrun, Slurm or Open MPI, for messages
  std::string attempt = "0";  // tells the keys of a restarted job from those of the one before
  std::string secret;         // that only its ranks know; empty: who connects is believed

  bool hosts_store() const { return rank == 0 && !launcher_hosts_store; }
};

/// The value of an environment variable; nothing where it is not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string&)>;

/// Nothing where no launcher has started this process. Throws InputError that names the variable
/// when a launcher's variables are there in part or make no sense.
std::optional<JobEnvironment> job_from_environment(const VariableLookup& variable);
/// In the environment of this process.
std::optional<JobEnvironment> job_from_environment();

}  // namespace pipewright::exec
