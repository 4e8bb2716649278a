// Tests how many steps of a training are stored.

#include "pipewright/loop_torch/recorder.hpp"

#include "support/catch.hpp"

namespace recorder_test {

using namespace pipewright;

TEST_CASE("Recorder: a long training stores only the newest steps", "[loop]") {
  plan::Program program;
  program.ranks.resize(1);
  loop::Recorder recorder(program);
  for (int step = 0; step < 1000; ++step)
    recorder.end_step({.begin = {static_cast<double>(step)}, .duration = {1}});
  REQUIRE(recorder.steps().size() == 256);
  CHECK(recorder.steps().front().begin.value == 744);
  CHECK(recorder.steps().back().begin.value == 999);
}

}  // namespace recorder_test
