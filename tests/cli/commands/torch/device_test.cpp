// Where ranks compute, as a user asks for it.

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace device_test {

using namespace pipewright;
using test::run_program;
using test::small_gpt;

TEST_CASE("--device cuda trains on GPUs with the bits of serial training, or says why it cannot",
          "[cli][device]") {
  const auto result = run_program(small_gpt("train", {"--device", "cuda", "--verify"}));
  CAPTURE(result.out, result.err);
  if (result.exit_code == 2) {
    WARN("skipped: " << result.err);
    CHECK(result.err.find("no GPU: ") != std::string::npos);
    for (const char* command : {"run", "profile"})
      CHECK(run_program(small_gpt(command, {"--device", "cuda"})).err.find("no GPU: ") !=
            std::string::npos);
    // Not for each rank: the command looks before it starts them.
    const auto job = run_program(small_gpt("train", {"--device", "cuda", "--processes"}));
    CHECK(job.exit_code == 2);
    CHECK(job.err == result.err);
    return;
  }
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
  const auto divided =
      run_program(small_gpt("train", {"--device", "cuda", "--own-multiprocessors", "--verify"}));
  CHECK(divided.exit_code == 0);
}

TEST_CASE("devices that make no sense are refused", "[cli][device]") {
  const auto unknown = run_program(small_gpt("train", {"--device", "abacus"}));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("--device") != std::string::npos);
  const auto undivided = run_program(small_gpt("train", {"--own-multiprocessors"}));
  CHECK(undivided.exit_code == 2);
  CHECK(undivided.err.find("--own-multiprocessors needs --device cuda") != std::string::npos);
}

}  // namespace device_test
