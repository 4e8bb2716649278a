#include <map>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace job_environment_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;

using Variables = std::map<std::string, std::string>;

std::optional<JobEnvironment> job_in(const Variables& variables) {
  return job_from_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string error_in(const Variables& variables) {
  return error_of([&] { job_in(variables); });
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables torchrun{{"RANK", "3"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"MASTER_ADDR", "node1"},
                         {"MASTER_PORT", "4711"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                         {"TORCHELASTIC_RUN_ID", "run7"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Variables slurm{{"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "16"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_JOB_ID", "1234567"},
                      {"SLURM_JOB_NODELIST", "node[003-007,9],gpu1"}};

const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};

TEST_CASE("Job: a process without a launcher is in no job", "[exec][job]") {
  CHECK_FALSE(job_in({{"HOME", "/root"}}));
}

TEST_CASE("Job: torchrun sets everything, and its agent may host the store", "[exec][job]") {
  const auto job = job_in(torchrun).value();
  CHECK(job.rank == 3);
  CHECK(job.size == 8);
  CHECK(job.local_rank == 1);
  CHECK(job.address == "node1");
  CHECK(job.port == 4711);
  CHECK(job.launcher == "torchrun");
  CHECK(job.attempt == "run7/2");  // keys of an earlier attempt are not read
  CHECK(job.launcher_hosts_store);

  Variables first = without(torchrun, "TORCHELASTIC_USE_AGENT_STORE");
  CHECK_FALSE(job_in(first)->hosts_store());  // rank 3
  first["RANK"] = "0";
  CHECK(job_in(first)->hosts_store());
}

TEST_CASE("Job: incomplete torchrun variables are rejected with the missing name", "[exec][job]") {
  for (const auto* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    CHECK(error_in(without(torchrun, name)) ==
          "torchrun seems to have started this process, but " + std::string(name) + " is not set");
}

TEST_CASE("Job: invalid numbers are rejected with the possible ones", "[exec][job]") {
  Variables wrong = torchrun;
  wrong["RANK"] = "8";
  CHECK(error_in(wrong) == "RANK is \"8\", but must be a number from 0 to 7");
  wrong["RANK"] = "1x";
  CHECK(error_in(wrong) == "RANK is \"1x\", but must be a number from 0 to 7");
}

TEST_CASE("Job: a local rank may exceed the number of ranks, and some processes may be standby",
          "[exec][job]") {
  Variables variables = torchrun;
  variables["LOCAL_RANK"] = "9";  // of 8, since other places were given up
  CHECK(job_in(variables)->local_rank == 9);
  variables["PIPEWRIGHT_JOB_RANKS"] = "2";
  const auto job = job_in(variables).value();
  CHECK(job.size == 2);
  CHECK(job.rank == 3);  // is a standby process
  variables["PIPEWRIGHT_JOB_RANKS"] = "9";
  CHECK(error_in(variables) == "PIPEWRIGHT_JOB_RANKS is \"9\", but must be a number from 1 to 8");
}

TEST_CASE("Job: under Slurm rank 0's host is the first node, and the port is the job's",
          "[exec][job]") {
  const auto job = job_in(slurm).value();
  CHECK(job.rank == 0);
  CHECK(job.size == 16);
  CHECK(job.address == "node003");
  CHECK(job.port == 10'000 + 1234567 % 20'000);
  CHECK(job.launcher == "Slurm");
  CHECK(job.hosts_store());
}

TEST_CASE("Job: a Slurm step has its own tasks, nodes and port", "[exec][job]") {
  Variables step = slurm;
  step.insert(
      {{"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", "node005"}});
  const auto job = job_in(step).value();
  CHECK(job.size == 2);
  CHECK(job.address == "node005");
  CHECK(job.port != job_in(slurm)->port);
}

TEST_CASE("Job: the first host of Slurm's node lists is found", "[exec][job]") {
  const auto first = [](const std::string& list) {
    Variables variables = slurm;
    variables["SLURM_JOB_NODELIST"] = list;
    return job_in(variables)->address;
  };
  CHECK(first("alone") == "alone");
  CHECK(first("a,b") == "a");
  CHECK(first("node[7,9-11]") == "node7");
  CHECK(first("rack[1-2]n[01-04].cluster") == "rack1n01.cluster");
  for (const auto* list : {"node[", "node[]", "node[-3]", ","}) {
    Variables variables = slurm;
    variables["SLURM_JOB_NODELIST"] = list;
    CHECK(error_in(variables) == "\"" + std::string(list) + "\" is not a list of nodes");
  }
  CHECK(error_in(without(slurm, "SLURM_JOB_NODELIST")) ==
        "Slurm seems to have started this process, but SLURM_JOB_NODELIST is not set");
  CHECK(error_in(without(slurm, "SLURM_NTASKS")) ==
        "Slurm seems to have started this process, but SLURM_NTASKS is not set");
}

TEST_CASE("Job: Open MPI needs an address on several nodes but not on one", "[exec][job]") {
  const auto job = job_in(open_mpi).value();
  CHECK(job.rank == 1);
  CHECK(job.size == 4);
  CHECK(job.address == "127.0.0.1");
  CHECK(job.port == 29500);
  CHECK(job.launcher == "Open MPI");

  Variables several = open_mpi;
  several["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  CHECK(
      error_in(several) ==
      "mpirun has started 4 ranks, 2 of them here: MASTER_ADDR must say on which host rank 0 runs "
      "(mpirun -x MASTER_ADDR=host …)");
  several["MASTER_ADDR"] = "node1";
  CHECK(job_in(several)->address == "node1");
}

TEST_CASE("Job: mpirun within a Slurm job is the launcher, and torchrun comes before both",
          "[exec][job]") {
  Variables both = slurm;
  both.insert(open_mpi.begin(), open_mpi.end());
  CHECK(job_in(both)->launcher == "Open MPI");
  both.insert(torchrun.begin(), torchrun.end());
  CHECK(job_in(both)->launcher == "torchrun");
}

TEST_CASE(
    "Job: the secret is PIPEWRIGHT_JOB_SECRET with every launcher, and a short one is rejected",
    "[exec][job]") {
  for (Variables variables : {torchrun, slurm, open_mpi}) {
    CHECK(job_in(variables)->secret.empty());
    variables["PIPEWRIGHT_JOB_SECRET"] = "0123456789abcdef";
    CHECK(job_in(variables)->secret == "0123456789abcdef");
    variables["PIPEWRIGHT_JOB_SECRET"] = "0123456789abcde";
    CHECK(error_in(variables) ==
          "PIPEWRIGHT_JOB_SECRET has 15 characters, but must have at least 16, such as those of "
          "`openssl rand -hex 32`");
  }
}

}  // namespace job_environment_test
