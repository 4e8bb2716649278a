#include "pipewright/exec/checkpoint/snapshot.hpp"

#include <ATen/ATen.h>

#include "exec/support/checkpoints.hpp"
#include "exec/support/small_gpt.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"

namespace snapshot_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Returns true if all tensors have equal numbers.
bool equal(const Snapshot& a, const Snapshot& b) {
  for (std::size_t layer = 0; layer < a.layers.size(); ++layer)
    for (const auto half : {&LayerState::parameters, &LayerState::optimizer})
      for (std::size_t t = 0; t < (a.layers[layer].*half).size(); ++t)
        if (!at::equal((a.layers[layer].*half)[t].value, (b.layers.at(layer).*half).at(t).value))
          return false;
  return true;
}

TEST_CASE("A snapshot without copies shares the training's memory until it is copied",
          "[exec][checkpoint]") {
  const auto setup = test::small_setup();
  Executor executor(plan::lower(test::make("1f1b", 2, 2)), test::small_partition(2), setup);
  executor.step(0);
  const Snapshot own = executor.snapshot(1, /*copied=*/false), kept = executor.snapshot(1);
  const Snapshot copied = copies_of(own);
  std::int64_t numbers = 0, tensors = 0;
  for (const at::Tensor& parameter : executor.parameters())
    numbers += parameter.numel(), ++tensors;
  CHECK(size_of(own) == plan::Bytes{(3 * numbers + tensors) * 4});  // and one step count each
  CHECK(equal(own, kept));
  executor.step(1);
  CHECK_FALSE(equal(own, kept));
  CHECK(equal(copied, kept));
  CHECK(equal(own, executor.snapshot(2)));
}

TEST_CASE("Either half of a layer can be read separately", "[exec][checkpoint]") {
  const test::TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  REQUIRE(test::save(writer, test::snapshot_of(5, {0, 1})).empty());
  const auto checkpoint = Checkpoint::open(folder.path() / "step_00000005");
  const LayerState all = checkpoint.layer(1), parameters = checkpoint.parameters_of(1),
                   optimizer = checkpoint.optimizer_of(1);
  CHECK_FALSE(all.parameters.empty());
  CHECK_FALSE(all.optimizer.empty());
  CHECK(parameters.parameters.size() == all.parameters.size());
  CHECK(parameters.optimizer.empty());
  CHECK(optimizer.parameters.empty());
  CHECK(optimizer.optimizer.size() == all.optimizer.size());
  CHECK(optimizer.name == all.name);
}

}  // namespace snapshot_test
