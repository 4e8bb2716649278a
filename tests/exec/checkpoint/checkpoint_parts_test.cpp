// Several writers that write one checkpoint together, and what is loaded from it.

#include <memory>

#include "exec/support/checkpoints.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace checkpoint_parts_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::holds_its_step;
using test::names_in;
using test::save;
using test::snapshot_of;
using test::TempFolder;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

void no_report(const std::string& message) { FAIL_CHECK(message); }

CheckpointOptions part_of(int part, int parts, const std::string& job = "job",
                          plan::Seconds timeout = plan::Seconds{60}) {
  return {.part = part, .parts = parts, .job = job, .timeout = timeout};
}

/// Saves one part for each snapshot. Returns the failure that part 0 reports.
std::string save_in_parts(const fs::path& folder, std::vector<Snapshot> snapshots) {
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  const auto parts = static_cast<int>(snapshots.size());
  for (int part = 0; part < parts; ++part) {
    writers.push_back(std::make_unique<CheckpointWriter>(folder, part_of(part, parts)));
    writers.back()->save(std::move(snapshots[static_cast<std::size_t>(part)]));
  }
  writers.front()->wait();
  return writers.front()->failure().value_or("");
}

/// Returns a tensor with elements [begin, end) of `whole`.
NamedTensor slice_of(const std::string& name, const at::Tensor& whole, std::int64_t begin,
                     std::int64_t end) {
  return {name, whole.flatten().slice(0, begin, end).clone(), begin, whole.numel()};
}

TEST_CASE("Checkpoint: any number of parts write the same checkpoint", "[exec][checkpoint]") {
  const std::vector<std::vector<std::vector<int>>> splits{
      {{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{3}, {0, 2}, {1}}, {{}, {0}, {1}, {2}, {3}}};
  for (const auto& split : splits) {
    const TempFolder folder;
    std::vector<Snapshot> snapshots;
    for (const auto& layers : split)
      snapshots.push_back(snapshot_of(3, layers));
    CHECK(save_in_parts(folder.path(), snapshots).empty());
    const Checkpoint checkpoint = open_newest(folder.path(), no_report);
    CHECK(holds_its_step(checkpoint, 4));
    CHECK(names_in(checkpoint.folder()).size() == 9);  // no part leaves another file
  }
}

TEST_CASE("Checkpoint: slices of several replicas are joined into flat tensors",
          "[exec][checkpoint]") {
  const TempFolder folder;
  const at::Tensor moment = at::arange(10, at::kFloat).view({2, 5});
  std::vector<Snapshot> snapshots(3, snapshot_of(6, {}));
  snapshots[0].layers = {{.index = 0,
                          .name = "layer",
                          .parameters = {{"weight", moment + 100}},
                          .optimizer = {slice_of("weight/exp_avg", moment, 4, 10)}}};
  snapshots[1].layers = {{.index = 0,
                          .name = "layer",
                          .parameters = {},
                          .optimizer = {slice_of("weight/exp_avg", moment, 0, 4),
                                        {"weight/step", at::scalar_tensor(6.0)}}}};
  snapshots[2].layers = {{.index = 0,
                          .name = "layer",
                          .parameters = {},
                          .optimizer = {slice_of("weight/exp_avg", moment, 4, 4)}}};
  CHECK(save_in_parts(folder.path(), snapshots).empty());
  const Checkpoint checkpoint = open_newest(folder.path(), no_report);
  CHECK(names_in(checkpoint.folder()) ==
        Names{"layer_000.safetensors", "manifest.json", "optimizer_000-part000.safetensors",
              "optimizer_000-part001.safetensors", "optimizer_000-part002.safetensors"});
  const LayerState layer = checkpoint.layer(0);
  CHECK(test::same(layer.optimizer, {{"weight/exp_avg", moment.flatten()},
                                     {"weight/step", at::scalar_tensor(6.0)}}));
  CHECK(at::equal(layer.parameters.at(0).value, moment + 100));
}

TEST_CASE("Checkpoint: duplicate and incomplete tensors make it invalid", "[exec][checkpoint]") {
  const at::Tensor moment = at::arange(10, at::kFloat);
  const auto failure = [&](const NamedTensor& first, const NamedTensor& second) {
    const TempFolder folder;
    std::vector<Snapshot> snapshots(2, snapshot_of(6, {}));
    snapshots[0].layers = {{.index = 0, .name = "layer", .parameters = {}, .optimizer = {first}}};
    snapshots[1].layers = {{.index = 0, .name = "layer", .parameters = {}, .optimizer = {second}}};
    const std::string message = save_in_parts(folder.path(), snapshots);
    CHECK(names_in(folder.path()).empty());
    return message.substr(std::min(message.size(), message.find("layer 0")));
  };
  CHECK(failure(slice_of("m", moment, 0, 4), slice_of("m", moment, 5, 10)) ==
        "layer 0 (layer): 'm' is stored in slices of which one begins at 5 instead of 4");
  CHECK(failure(slice_of("m", moment, 0, 4), slice_of("m", moment, 4, 9)) ==
        "layer 0 (layer): 'm' has 10 elements, but its slices have 9");
  CHECK(failure(slice_of("m", moment, 0, 4), slice_of("m", moment.slice(0, 0, 9), 4, 9)) ==
        "layer 0 (layer): 'm' is stored in slices that do not match");
  CHECK(failure(slice_of("m", moment, 0, 10), {"m", moment}) ==
        "layer 0 (layer): 'm' is stored in slices that do not match");
}

TEST_CASE("Checkpoint: parts with different training states make it invalid",
          "[exec][checkpoint]") {
  const TempFolder folder;
  std::vector<Snapshot> snapshots{snapshot_of(6, {0}), snapshot_of(6, {1})};
  snapshots[1].training.seed = 8;
  CHECK(save_in_parts(folder.path(), snapshots) ==
        "the checkpoint of step 6 was not written: part 1 has a different training state from part "
        "0 at step 6");
}

TEST_CASE("Checkpoint: a missing part is reported, and earlier checkpoints remain",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CHECK(save_in_parts(folder.path(), {snapshot_of(1, {0}), snapshot_of(1, {1})}).empty());
  CheckpointWriter first(folder.path(), part_of(0, 2, "again", plan::Seconds{0.02}));
  CHECK(save(first, snapshot_of(2, {0})) ==
        "the checkpoint of step 2 was not written: part 1 of 2 was not written within 0.02 s");
  CHECK(names_in(folder.path()) == Names{"step_00000001"});
  CHECK(holds_its_step(open_newest(folder.path(), no_report), 2));
}

TEST_CASE("Checkpoint: a part left by a killed job is not mistaken for a new one",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter killed(folder.path(), part_of(1, 2, "killed"));
  CHECK(save(killed, snapshot_of(2, {1})).empty());
  CHECK(names_in(folder.path()) == Names{"step_00000002.killed.tmp"});
  // Restore what the new writer removes, as if a slow file system showed it only now.
  CheckpointWriter first(folder.path(), part_of(0, 2, "again", plan::Seconds{0.02}));
  CHECK(save(killed, snapshot_of(2, {1})).empty());
  CHECK_FALSE(save(first, snapshot_of(2, {0})).empty());
  CHECK(list_checkpoints(folder.path()).empty());
}

TEST_CASE("Checkpoint: a part that fails tells part 0, which does not wait for it",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter first(folder.path(), part_of(0, 2));
  CheckpointWriter second(folder.path(), part_of(1, 2));
  const fs::path obstacle = folder.path() / "step_00000002.job.tmp" / "layer_001.safetensors";
  fs::create_directories(obstacle);
  second.save(snapshot_of(2, {1}));
  CHECK(save(first, snapshot_of(2, {0})) ==
        "the checkpoint of step 2 was not written: part 1: " + obstacle.string() +
            ": cannot be made: File exists");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("Checkpoint: an abandoned writer does not wait for other parts", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter first(folder.path(), part_of(0, 2));
  first.save(snapshot_of(2, {0}));
  first.abandon();
  first.wait();
  CHECK(first.failure() ==
        "the checkpoint of step 2 was not written: stopped waiting before part 1 was written");
}

TEST_CASE("Checkpoint: part 0 stops waiting for the others once the job has ended",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointOptions options = part_of(0, 2);
  int asked = 0;
  options.require_going = [&] {
    if (++asked == 3)
      throw Aborted("rank 1 is gone");
  };
  CheckpointWriter first(folder.path(), options);
  CHECK(save(first, snapshot_of(2, {0})) ==
        "the checkpoint of step 2 was not written: stopped waiting before part 1 was written");
  CHECK(asked == 3);
}

}  // namespace checkpoint_parts_test
