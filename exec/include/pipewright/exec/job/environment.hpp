#pragma once

// The place of a process in its job, from the environment variables of the launcher.

#include <functional>
#include <optional>
#include <string>

namespace pipewright::exec {

/// A process in the job that its launcher describes.
struct JobEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // among the ranks of this node
  std::string address;  // of the job's store
  int port = 0;         // of the job's store
  bool launcher_hosts_store = false;
  std::string launcher;       // torchrun, Slurm or Open MPI, for messages
  std::string attempt = "0";  // distinguishes the keys of a restarted job from those before
  std::string secret;         // known only to its ranks; empty: connections are not authenticated

  bool hosts_store() const { return rank == 0 && !launcher_hosts_store; }
};

/// Returns the value of an environment variable; nothing if it is not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string&)>;

/// Returns nothing if no launcher started this process. Throws InputError that names the variable
/// if a launcher's variables are incomplete or invalid.
std::optional<JobEnvironment> job_from_environment(const VariableLookup& variable);
/// Does the same with the environment of this process.
std::optional<JobEnvironment> job_from_environment();

}  // namespace pipewright::exec
