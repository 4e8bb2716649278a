#include "pipewright/exec/job/environment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>

#include "forwarded.hpp"
#include "node_list.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

constexpr int default_port = 29500;  // torch's
constexpr int largest_port = 65535;

/// The variables of one launcher, read strictly.
class Variables {
 public:
  Variables(std::string launcher, const VariableLookup& lookup)
      : launcher_(std::move(launcher)), lookup_(lookup) {}

  std::optional<std::string> find(const std::string& name) const { return lookup_(name); }

  std::string text(const std::string& name) const {
    if (auto value = lookup_(name); value && !value->empty())
      return *value;
    throw plan::InputError(
        fmt::format("{} seems to have started this process, but {} is not set", launcher_, name));
  }

  int number(const std::string& name, int least, int most) const {
    const std::string value = text(name);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least ||
        number > most)
      throw plan::InputError(fmt::format("{} is \"{}\", but must be a number from {} to {}", name,
                                         value, least, most));
    return number;
  }

  int number_or(int otherwise, const std::string& name, int least, int most) const {
    return find(name) ? number(name, least, most) : otherwise;
  }

  /// Returns the environment with rank, size and local rank from these variables.
  JobEnvironment environment(const std::string& rank, const std::string& size,
                             const std::string& local_rank) const {
    JobEnvironment job;
    job.launcher = launcher_;
    job.size = number(size, 1, 1 << 20);
    job.rank = number(rank, 0, job.size - 1);
    // After ranks have been given up, a local rank may exceed the number of ranks.
    job.local_rank = number_or(0, local_rank, 0, 1 << 20);
    return job;
  }

  int port_or(int otherwise) const { return number_or(otherwise, "MASTER_PORT", 1, largest_port); }

 private:
  std::string launcher_;
  const VariableLookup& lookup_;
};

/// Reads torchrun's variables, which users may also set by hand.
JobEnvironment from_torchrun(const VariableLookup& lookup) {
  const Variables variables("torchrun", lookup);
  JobEnvironment job = variables.environment("RANK", "WORLD_SIZE", "LOCAL_RANK");
  job.address = variables.text("MASTER_ADDR");
  job.port = variables.number("MASTER_PORT", 1, largest_port);
  job.launcher_hosts_store = variables.find("TORCHELASTIC_USE_AGENT_STORE") == "True";
  // The agent's store outlives a restart of the ranks and keeps their old values.
  job.attempt = fmt::format("{}/{}", variables.find("TORCHELASTIC_RUN_ID").value_or("none"),
                            variables.find("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return job;
}

/// Returns a port below the range that systems assign themselves: the same on all ranks, different
/// for different jobs.
int port_of_number(unsigned long long number) { return 10'000 + static_cast<int>(number % 20'000); }

JobEnvironment from_slurm(const VariableLookup& lookup) {
  const Variables variables("Slurm", lookup);
  const bool step = variables.find("SLURM_STEP_NUM_TASKS").has_value();
  JobEnvironment job = variables.environment(
      "SLURM_PROCID", step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_LOCALID");
  const auto address = variables.find("MASTER_ADDR");
  const bool own_nodes = variables.find("SLURM_STEP_NODELIST").has_value();
  job.address =
      address
          ? *address
          : first_host(variables.text(own_nodes ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST"));
  if (variables.find("MASTER_PORT")) {
    job.port = variables.port_or(default_port);
  } else {
    // Several steps of one job may run on the same nodes.
    const int id = variables.number("SLURM_JOB_ID", 0, std::numeric_limits<int>::max());
    const int of_step = variables.number_or(0, "SLURM_STEP_ID", 0, std::numeric_limits<int>::max());
    job.port = port_of_number(static_cast<unsigned long long>(id) + 101ULL * of_step);
  }
  return job;
}

JobEnvironment from_open_mpi(const VariableLookup& lookup) {
  const Variables variables("Open MPI", lookup);
  JobEnvironment job = variables.environment("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                             "OMPI_COMM_WORLD_LOCAL_RANK");
  const int here = variables.number_or(job.size, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, job.size);
  const auto address = variables.find("MASTER_ADDR");
  if (!address && here < job.size)
    throw plan::InputError(
        fmt::format("mpirun has started {} ranks, {} of them here: MASTER_ADDR must say on which "
                    "host rank 0 runs (mpirun -x MASTER_ADDR=host …)",
                    job.size, here));
  job.address = address.value_or("127.0.0.1");
  job.port = variables.port_or(default_port);
  return job;
}

/// Returns the secret with which a rank authenticates itself; empty if it was given none.
std::string secret_from(const VariableLookup& lookup) {
  constexpr std::size_t shortest = 16;
  const std::string secret = lookup(variable_of_secret).value_or("");
  if (!secret.empty() && secret.size() < shortest)
    throw plan::InputError(fmt::format(
        "{} has {} characters, but must have at least {}, such as those of `openssl rand -hex 32`",
        variable_of_secret, secret.size(), shortest));
  return secret;
}

// The innermost launcher counts: mpirun and torchrun run inside Slurm's jobs.
std::optional<JobEnvironment> of_launcher(const VariableLookup& lookup) {
  if (lookup("RANK") || lookup("WORLD_SIZE"))
    return from_torchrun(lookup);
  if (lookup("OMPI_COMM_WORLD_RANK") || lookup("OMPI_COMM_WORLD_SIZE"))
    return from_open_mpi(lookup);
  if (lookup("SLURM_PROCID"))
    return from_slurm(lookup);
  return std::nullopt;
}

}  // namespace

std::optional<JobEnvironment> job_from_environment(const VariableLookup& lookup) {
  auto job = of_launcher(lookup);
  if (!job)
    return job;
  job->secret = secret_from(lookup);
  if (lookup(variable_of_ranks))
    job->size = Variables(job->launcher, lookup).number(variable_of_ranks, 1, job->size);
  return job;
}

std::optional<JobEnvironment> job_from_environment() {
  return job_from_environment([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace pipewright::exec
