// Tests --device through the command line.

#include "cli/support/program.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace device_test {

using namespace pipewright;
using test::run_program;
using test::small_gpt;

/// Trains on GPUs; the exit code is 2 on a machine without GPUs.
test::Result trained_on_gpus() {
  return run_program(small_gpt("train", {"--device", "cuda", "--verify"}));
}

TEST_CASE("--device cuda trains on GPUs with the bits of serial training", "[cli][device][cuda]") {
  const auto result = trained_on_gpus();
  if (result.exit_code == 2 && result.err.find("no GPU: ") != std::string::npos)
    test::skip(result.err.substr(0, result.err.find('\n')));
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
  const auto divided =
      run_program(small_gpt("train", {"--device", "cuda", "--own-multiprocessors", "--verify"}));
  CHECK(divided.exit_code == 0);
}

TEST_CASE("--device cuda reports the reason where there is no GPU", "[cli][device]") {
  const auto result = trained_on_gpus();
  if (result.exit_code == 0)
    test::skip("this machine has a GPU");
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("no GPU: ") != std::string::npos);
  for (const char* command : {"run", "profile"})
    CHECK(run_program(small_gpt(command, {"--device", "cuda"})).err.find("no GPU: ") !=
          std::string::npos);
  // The error is printed once, not by each rank: the command checks before it starts them.
  const auto job = run_program(small_gpt("train", {"--device", "cuda", "--processes"}));
  CHECK(job.exit_code == 2);
  CHECK(job.err == result.err);
}

TEST_CASE("Invalid devices are rejected", "[cli][device]") {
  const auto unknown = run_program(small_gpt("train", {"--device", "abacus"}));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("--device") != std::string::npos);
  const auto undivided = run_program(small_gpt("train", {"--own-multiprocessors"}));
  CHECK(undivided.exit_code == 2);
  CHECK(undivided.err.find("--own-multiprocessors needs --device cuda") != std::string::npos);
}

}  // namespace device_test
