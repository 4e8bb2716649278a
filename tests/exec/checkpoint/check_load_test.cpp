#include "pipewright/exec/checkpoint/check_load.hpp"

#include "exec/support/checkpoints.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace check_load_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::snapshot_of;
using test::TempFolder;
using Reasons = std::vector<std::string>;

/// Checks a checkpoint of two layers against a model and training to which `change` was applied.
template <class Change>
LoadCheck check_after(const Change& change) {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  const Snapshot snapshot = snapshot_of(5, {0, 1});
  REQUIRE(test::save(writer, snapshot).empty());
  std::vector<LayerShape> wanted{shape_of(snapshot.layers[0]), shape_of(snapshot.layers[1])};
  TrainingState training = snapshot.training;
  change(wanted, training);
  return check_load(Checkpoint::open(folder.path() / "step_00000005"), wanted, training);
}

using Layers = std::vector<LayerShape>;

TEST_CASE("Checkpoint: loads into an equal model, at any step and loss scale",
          "[exec][checkpoint]") {
  const LoadCheck check = check_after([](Layers&, TrainingState& training) {
    training.step = 0;
    training.loss_scale = 1;
    training.steps_since_overflow = 0;
  });
  CHECK(check.obstacles == Reasons{});
  CHECK(check.differences == Reasons{});
}

TEST_CASE("Checkpoint: the check lists every reason why it cannot be loaded",
          "[exec][checkpoint]") {
  const LoadCheck check = check_after([](Layers& wanted, TrainingState& training) {
    wanted[0].name = "embedding";
    wanted[0].parameters[1].sizes = {2, 4};
    wanted[1].parameters[0] = {"scale", at::kHalf, {3}};
    wanted[1].parameters[1].dtype = at::kHalf;
    wanted.push_back({"head", {}});
    training.optimizer = "sgd";
  });
  CHECK(check.obstacles ==
        Reasons{"layers: 2 in the checkpoint, 3 requested",
                "layer 0 is 'layer 0' in the checkpoint, 'embedding' in the model",
                "layer 0 (embedding): 'weight' is float32 [2, 3] in the checkpoint, float32 [2, 4] "
                "in the model",
                "layer 1 (layer 1): 'scale' is not in the checkpoint",
                "layer 1 (layer 1): 'weight' is float32 [2, 3] in the checkpoint, float16 [2, 3] "
                "in the model",
                "layer 1 (layer 1): 'bias' is not in the model",
                "optimizer: adamw in the checkpoint, sgd requested"});
  CHECK(check.differences == Reasons{});
}

TEST_CASE("Checkpoint: differences that only change the bits of later steps are listed separately",
          "[exec][checkpoint]") {
  const LoadCheck check = check_after([](Layers&, TrainingState& training) {
    training.seed = 1;
    training.microbatches = 16;
    training.microbatch_size = 1;
    training.gradient_groups = 2;
    training.precision = "bfloat16";
    training.device = "avx512";
  });
  CHECK(check.obstacles == Reasons{});
  CHECK(check.differences == Reasons{"precision: float32 in the checkpoint, bfloat16 requested",
                                     "seed: 7 in the checkpoint, 1 requested",
                                     "microbatches: 8 in the checkpoint, 16 requested",
                                     "microbatch size: 2 in the checkpoint, 1 requested",
                                     "gradient groups: 4 in the checkpoint, 2 requested",
                                     "computed with: avx2 in the checkpoint, avx512 requested"});
}

}  // namespace check_load_test
