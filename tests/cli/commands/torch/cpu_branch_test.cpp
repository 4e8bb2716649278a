// Tests training.cpu_branch through the command line.

#include <cstdio>
#include <fstream>
#include <sstream>

#include "cli/support/program.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace cpu_branch_test {

using namespace pipewright;
using test::run_program;
using test::small_gpt;
using test::TempFolder;

bool cpu_has(const std::string& flag) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line);
      for (std::string word; words >> word;)
        if (word == flag)
          return true;
      return false;
    }
  return false;
}

/// Returns the branches of this CPU except `best`.
std::vector<std::string> branches() {
  std::vector<std::string> all{"compatible"};
  if (cpu_has("avx2"))
    all.emplace_back("avx2");
  if (cpu_has("avx512vl"))
    all.emplace_back("avx512");
  return all;
}

std::vector<std::string> with(const std::string& branch, std::vector<std::string> more) {
  more.insert(more.end(), {"--set", "training.cpu_branch=" + branch});
  return more;
}

TEST_CASE(
    "Every instruction-set branch of this CPU trains with the bits of serial training, as threads "
    "and as processes",
    "[cli][cpu-branch]") {
  for (const std::string& branch : branches())
    for (const char* way : {"--verify", "--processes"}) {
      INFO(branch << " " << way);
      std::vector<std::string> more{"--verify"};
      if (std::string(way) != "--verify")
        more.emplace_back(way);
      const auto result = run_program(small_gpt("train", with(branch, more)));
      if (branch != "compatible" && result.err.find("MKL does not have it") != std::string::npos) {
        test::skip_part("MKL has no branch " + branch + " on this CPU");
        continue;
      }
      INFO(result.err);
      CHECK(result.exit_code == 0);
      CHECK(result.out.find("are bit-identical") != std::string::npos);
    }
}

TEST_CASE("A branch that the CPU lacks is rejected, and so is one that does not exist",
          "[cli][cpu-branch]") {
  const auto unknown = run_program(small_gpt("train", with("avx1024", {})));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("/training/cpu_branch") != std::string::npos);
  for (const std::string branch : {"avx2", "avx512"}) {
    if (cpu_has(branch == "avx2" ? "avx2" : "avx512vl"))
      continue;
    const auto result = run_program(small_gpt("train", with(branch, {})));
    CHECK(result.exit_code == 2);
    CHECK(
        result.err.find("training.cpu_branch " + branch +
                        ": this CPU does not support it. Use compatible, which works everywhere") !=
        std::string::npos);
  }
}

TEST_CASE("Resuming with another branch prints that the bits will differ", "[cli][cpu-branch]") {
  const TempFolder folder;
  const auto checkpoints = (folder.path() / "checkpoints").string();
  REQUIRE(run_program(small_gpt("train", with("compatible", {"--checkpoints", checkpoints})))
              .exit_code == 0);
  const std::vector<std::string> further{"--checkpoints", checkpoints, "--resume", "--set",
                                         "training.steps=5"};
  const auto same = run_program(small_gpt("train", with("compatible", further)));
  CHECK(same.exit_code == 0);
  CHECK(same.err.find("not bit-identical") == std::string::npos);
  const auto other = run_program(small_gpt("train", with("best", further)));
  CHECK(other.exit_code == 0);
  CHECK(other.err.find("not bit-identical from here: computed with: compatible in the checkpoint, "
                       "the best of ") != std::string::npos);
}

}  // namespace cpu_branch_test
