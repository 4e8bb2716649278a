// Observed stages report what each layer does, and compute the same as without an observer.

#include "pipewright/exec/stage/layer_observer.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "exec/support/equals_serial.hpp"
#include "pipewright/exec/stage/stage.hpp"

namespace layer_observer_test {

using namespace pipewright;
using namespace pipewright::exec;
using Kind = plan::InstructionKind;

/// Writes "0F0:2 " for layer 2.
class Notes final : public LayerObserver {
 public:
  void begin(const plan::Instruction& part, int layer) override {
    CHECK_FALSE(is_open_);
    is_open_ = true;
    all += fmt::format("{}:{} ", plan::to_string(part), layer);
  }
  void end(const plan::Instruction&, int) override {
    CHECK(is_open_);
    is_open_ = false;
  }
  std::string all;

 private:
  bool is_open_ = false;
};

/// Runs one step of the small GPT's six layers as one stage. Returns its notes, and the parameters
/// after it.
std::pair<std::string, std::vector<at::Tensor>> trained(StageSpec spec, bool is_observed) {
  const auto setup = test::small_setup();
  Notes notes;
  spec.last = static_cast<int>(setup.layers.size());
  spec.microbatches = {{0, {0}}};
  spec.observer = is_observed ? &notes : nullptr;
  const BackwardKind kind = spec.backwards[0];
  Stage stage(spec, setup);
  stage.begin({.data = setup.data}, 1);
  stage.load({Kind::Load, 0, 0, 0});
  stage.compute({Kind::Forward, 0, 0, 0});
  if (kind.recomputed)
    stage.compute({Kind::Recompute, 0, 0, 0});
  if (kind.split) {
    stage.compute({Kind::InputGradient, 0, 0, 0});
    stage.compute({Kind::WeightGradient, 0, 0, 0});
  } else {
    stage.compute({Kind::Backward, 0, 0, 0});
  }
  stage.finish_gradients();
  stage.update({Kind::OptimizerStep, 0}, 0.1);
  stage.end();
  return {notes.all, stage.optimizer().parameters()};
}

TEST_CASE("Each layer's part of an instruction is observed in order, the loss after the last",
          "[exec][stage]") {
  const std::string loads = "0LOAD0:0 0LOAD0:6 ",
                    forward = "0F0:0 0F0:1 0F0:2 0F0:3 0F0:4 0F0:5 0F0:6 ",
                    step = "0STEP:0 0STEP:1 0STEP:2 0STEP:3 0STEP:4 0STEP:5 ";
  StageSpec spec;
  CHECK(trained(spec, true).first ==
        loads + forward + "0B0:6 0B0:5 0B0:4 0B0:3 0B0:2 0B0:1 0B0:0 " + step);
  spec.backwards[0].split = true;
  CHECK(trained(spec, true).first ==
        loads + forward +
            "0I0:6 0I0:5 0I0:4 0I0:3 0I0:2 0I0:1 "  // tokens have no gradient
            "0W0:6 0W0:5 0W0:4 0W0:3 0W0:2 0W0:1 0W0:0 " +
            step);
}

TEST_CASE("Recomputed layers are observed as such, in a Recompute and in a backward",
          "[exec][stage]") {
  StageSpec spec;
  spec.backwards[0].recomputed = true;
  spec.recompute_layers = 4;  // layers 4 and 5 with the loss, then layers 0 to 3
  const std::string told = trained(spec, true).first;
  CHECK(told.substr(told.find("0R0")) ==
        "0R0:4 0R0:5 0R0:6 0B0:6 0B0:5 0B0:4 "
        "0R0:0 0R0:1 0R0:2 0R0:3 0B0:3 0B0:2 0B0:1 0B0:0 "
        "0STEP:0 0STEP:1 0STEP:2 0STEP:3 0STEP:4 0STEP:5 ");
  spec.recompute_layers = 0;
  const std::string at_once = trained(spec, true).first;
  CHECK(at_once.substr(at_once.find("0R0"), 48) ==
        "0R0:0 0R0:1 0R0:2 0R0:3 0R0:4 0R0:5 0R0:6 0B0:6 ");
}

TEST_CASE("An observed stage trains with the bits of one that is not observed", "[exec][stage]") {
  int cases = 0;
  for (const bool split : {false, true})
    for (const bool recomputed : {false, true})
      for (const int layers : {0, 1, 4}) {
        if (!recomputed && layers > 0)
          continue;
        ++cases;
        CAPTURE(split, recomputed, layers);
        StageSpec spec;
        spec.backwards[0] = {recomputed, split};
        spec.recompute_layers = layers;
        const auto observed = trained(spec, true).second, plain = trained(spec, false).second;
        REQUIRE(observed.size() == plain.size());
        for (std::size_t p = 0; p < plain.size(); ++p)
          CHECK(test::same_bits(observed[p], plain[p]));
      }
  CHECK(cases == 8);
}

}  // namespace layer_observer_test
