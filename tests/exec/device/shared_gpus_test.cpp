#include "pipewright/exec/device/shared_gpus.hpp"

#include "support/catch.hpp"

namespace shared_gpus_test {

using namespace pipewright::exec;
using Hosts = std::vector<std::string>;

TEST_CASE("Processes that each see only their own GPU stay on one host for NCCL", "[device]") {
  // As with Slurm's --gpus-per-task: two hosts with two processes each, all of which see their GPU
  // as GPU 0.
  CHECK(hosts_for_nccl({{"a", "x"}, {"a", "y"}, {"b", "z"}, {"b", "w"}}) == Hosts{"", "", "", ""});
}

TEST_CASE("With shared GPUs, all but the first process of each GPU are on another host",
          "[device]") {
  CHECK(hosts_for_nccl({{"a", "x"}, {"a", "y"}, {"a", "x"}, {"a", "y"}, {"a", "x"}}) ==
        Hosts{"", "", "a-1", "a-1", "a-2"});
  // Hosts with different names are different hosts, even if their GPUs have the same UUID.
  CHECK(hosts_for_nccl({{"a", "x"}, {"b", "x"}}) == Hosts{"", ""});
}

}  // namespace shared_gpus_test
