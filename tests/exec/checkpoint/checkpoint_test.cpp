#include "pipewright/exec/checkpoint/checkpoint.hpp"

#include <chrono>
#include <fstream>
#include <limits>
#include <sstream>

#include "exec/support/checkpoints.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace checkpoint_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;
using test::holds_its_step;
using test::names_in;
using test::save;
using test::snapshot_of;
using test::TempFolder;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

void no_report(const std::string& message) { FAIL_CHECK(message); }

TEST_CASE("Checkpoint: loads what was saved, bit for bit", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  CHECK(save(writer, snapshot_of(10, {0, 1, 2})).empty());
  CHECK(writer.written() == 10);

  const Checkpoint checkpoint = open_newest(folder.path(), no_report);
  CHECK(checkpoint.folder() == folder.path() / "step_00000010");
  CHECK(holds_its_step(checkpoint, 3));
  CHECK(names_in(folder.path()) == Names{"step_00000010"});
  CHECK(names_in(checkpoint.folder()) ==
        Names{"layer_000.safetensors", "layer_001.safetensors", "layer_002.safetensors",
              "manifest.json", "optimizer_000.safetensors", "optimizer_001.safetensors",
              "optimizer_002.safetensors"});
}

TEST_CASE(
    "Checkpoint: files are safetensors with wide types first, so that all tensors are aligned",
    "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  save(writer, snapshot_of(10, {0}));
  std::ostringstream bytes;
  bytes << std::ifstream(folder.path() / "step_00000010" / "layer_000.safetensors").rdbuf();
  const auto values = parse_safetensors(bytes.str(), "layer");
  REQUIRE(values.size() == 2);
  CHECK(values[0].name == "weight");  // float32
  CHECK(values[1].name == "bias");    // bfloat16
}

TEST_CASE("Checkpoint: save returns at once and the snapshot is written in the background",
          "[exec][checkpoint]") {
  const TempFolder folder;
  {
    CheckpointWriter writer(folder.path(), {});
    for (int step = 1; step <= 5; ++step)
      writer.save(snapshot_of(step, {0}));
  }  // the destructor waits for the write
  CHECK(open_newest(folder.path(), no_report).training().step == 5);
}

TEST_CASE("Checkpoint: a layer without parameters and an empty tensor are restored",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  Snapshot snapshot = snapshot_of(1, {});
  snapshot.layers.push_back({.index = 0, .name = "relu", .parameters = {}, .optimizer = {}});
  snapshot.layers.push_back(
      {.index = 1, .name = "none", .parameters = {{"w", at::empty({0, 4})}}, .optimizer = {}});
  CHECK(save(writer, snapshot).empty());
  const Checkpoint checkpoint = open_newest(folder.path(), no_report);
  CHECK(checkpoint.layer(0).name == "relu");
  CHECK(checkpoint.layer(0).parameters.empty());
  CHECK(checkpoint.layer(1).parameters.at(0).value.sizes() == at::IntArrayRef{0, 4});
}

TEST_CASE("Checkpoint: the newest `keep` checkpoints remain", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {.keep = 2});
  for (int step = 1; step <= 4; ++step)
    CHECK(save(writer, snapshot_of(step, {0})).empty());
  CHECK(names_in(folder.path()) == Names{"step_00000003", "step_00000004"});
}

TEST_CASE("Checkpoint: a damaged checkpoint does not count as kept", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {.keep = 2});
  save(writer, snapshot_of(1, {0}));
  save(writer, snapshot_of(2, {0}));
  fs::remove(folder.path() / "step_00000002" / "layer_000.safetensors");
  save(writer, snapshot_of(3, {0}));
  CHECK(names_in(folder.path()) == Names{"step_00000001", "step_00000002", "step_00000003"});
}

TEST_CASE("Checkpoint: resuming from an earlier step does not remove later checkpoints",
          "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {.keep = 1});
  save(writer, snapshot_of(9, {0}));
  save(writer, snapshot_of(5, {0}));
  CHECK(names_in(folder.path()) == Names{"step_00000005", "step_00000009"});
}

TEST_CASE("Checkpoint: saving a step again replaces the old checkpoint", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  Snapshot old = snapshot_of(4, {0});
  old.layers[0].parameters.pop_back();
  CHECK(save(writer, old).empty());
  CHECK_FALSE(holds_its_step(open_newest(folder.path(), no_report), 1));
  CHECK(save(writer, snapshot_of(4, {0})).empty());
  CHECK(holds_its_step(open_newest(folder.path(), no_report), 1));
  CHECK(names_in(folder.path()) == Names{"step_00000004"});
}

TEST_CASE("Checkpoint: leftovers of a killed job are removed, and nothing else",
          "[exec][checkpoint]") {
  const TempFolder folder;
  fs::create_directories(folder.path() / "step_00000003.killed.tmp");
  fs::create_directories(folder.path() / "step_00000001.killed.old.tmp");
  fs::create_directories(folder.path() / "step_3.tmp");  // not a name that the writer uses
  folder.write("notes.tmp", "mine");
  {
    Names told;
    CHECK_THROWS_WITH(open_newest(folder.path(), [&](const auto& line) { told.push_back(line); }),
                      folder.path().string() + ": contains no complete checkpoint");
    REQUIRE(told.size() == 2);
    CHECK(told[0] == (folder.path() / "step_00000003.killed.tmp").string() +
                         ": incomplete: its job ended while it was written");
  }
  CheckpointWriter writer(folder.path(), {});
  CHECK(names_in(folder.path()) == Names{"notes.tmp", "step_3.tmp"});
}

TEST_CASE("Checkpoint: a list shows the newest first, with size and damage", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {.keep = 3});
  for (const int step : {1, 2, 3})
    save(writer, snapshot_of(step, {0}));
  fs::remove(folder.path() / "step_00000002" / "manifest.json");
  fs::rename(folder.path() / "step_00000003", folder.path() / "step_00000004");
  const auto list = list_checkpoints(folder.path());
  REQUIRE(list.size() == 3);
  CHECK(list[0].damage == list[0].folder.string() + ": damaged: it holds step 3");
  CHECK(list[1].damage == list[1].folder.string() + ": incomplete: it has no manifest.json");
  CHECK(list[2].damage.empty());
  CHECK(list[2].step == 1);
  CHECK(list[2].size > plan::Bytes{100});
  CHECK(list_checkpoints(folder.path() / "absent").empty());
}

TEST_CASE("Checkpoint: impossible options are rejected with an error message",
          "[exec][checkpoint]") {
  const TempFolder folder;
  const auto refusal = [&](const CheckpointOptions& options) {
    return error_of([&] { CheckpointWriter(folder.path(), options); });
  };
  CHECK(refusal({.part = 2, .parts = 2, .job = "a"}) == "checkpoints: there is no part 2 of 2");
  CHECK(refusal({.keep = 0}) == "checkpoints: the number to keep is 0, but must be at least 1");
  CHECK(refusal({.parts = 2}) ==
        "checkpoints: the job \"\" must be a word of letters, digits, '-' and '_', the same for "
        "all parts");
  CHECK(refusal({.job = "../x"}) != "no error");
  const fs::path file = folder.write("file", "");
  CHECK(error_of([&] { CheckpointWriter(file, {}); }) != "no error");
  CHECK(new_job_id() != new_job_id());
}

TEST_CASE("Checkpoint: a snapshot that cannot be stored is reported, not thrown",
          "[exec][checkpoint]") {
  const TempFolder folder;
  Names told;
  CheckpointWriter writer(folder.path(),
                          {.report = [&](const std::string& line) { told.push_back(line); }});
  CHECK(save(writer, snapshot_of(1, {0, 2})) ==
        "the checkpoint of step 1 was not written: layer 1 is missing");
  Snapshot wrong_type = snapshot_of(2, {0});
  wrong_type.layers[0].parameters[0].value = at::zeros({2}, at::kComplexFloat);
  CHECK(save(writer, wrong_type) ==
        "the checkpoint of step 2 was not written: tensors of type ComplexFloat cannot be stored "
        "in a safetensors file");
  Snapshot no_number = snapshot_of(3, {0});
  no_number.training.loss_scale = std::numeric_limits<double>::infinity();
  CHECK_FALSE(save(writer, no_number).empty());
  CHECK(names_in(folder.path()).empty());
  CHECK(told.size() == 3);
  CHECK_FALSE(writer.written());

  CHECK(save(writer, snapshot_of(4, {0})).empty());
  CHECK_FALSE(writer.failure());
}

TEST_CASE("Checkpoint: a throttled write is no faster than its limit, with the same result",
          "[exec][checkpoint]") {
  const TempFolder folder;
  const auto began = std::chrono::steady_clock::now();
  CheckpointWriter writer(folder.path(), {.most_bytes_per_s = 2000});
  const Snapshot snapshot = snapshot_of(3, {0, 1});
  CHECK(save(writer, snapshot).empty());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CHECK(took.count() >= static_cast<double>(size_of(snapshot).value) / 2000);
  CHECK(holds_its_step(open_newest(folder.path(), no_report), 2));
}

TEST_CASE("Checkpoint: a layer that does not exist is rejected", "[exec][checkpoint]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  save(writer, snapshot_of(1, {0}));
  const Checkpoint checkpoint = open_newest(folder.path(), no_report);
  CHECK(error_of([&] { checkpoint.layer(1); }) ==
        checkpoint.folder().string() + ": layer 1 was requested, but the checkpoint has 1 layers");
}

}  // namespace checkpoint_test
