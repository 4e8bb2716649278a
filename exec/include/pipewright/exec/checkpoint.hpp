#pragma once

// Checkpoints: what training needs to go on, in one file a layer, so that any other partition,
// schedule, number of ranks or replicas can load it. Random numbers and data are functions of seed
// and step (see layer.hpp and dataset.hpp): these two are the random-number state and the data
// position, and there is nothing else to save of either.
//
//   FOLDER/step_00000010/layer_003.safetensors               parameters
//                        optimizer_003.safetensors           optimizer state
//                        optimizer_003-part002.safetensors   the slices of it that part 2 holds
//                        manifest.json                       training state, and per file its
//                                                            tensors, size and CRC-32C
//
// A checkpoint is written under another name and takes its own only when all of it is on the disk:
// a job may be killed at any instant. A FOLDER belongs to one job at a time.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipewright/exec/safetensors.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

struct NamedTensor {
  std::string name;
  at::Tensor value;
  /// With `whole` >= 0, `value` is the numbers [begin, begin + numel) of a tensor of `whole`
  /// numbers, flat: what one replica holds of sharded optimizer state.
  std::int64_t begin = 0;
  std::int64_t whole = -1;
};

struct LayerState {
  int index = 0;
  std::string name;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer;  // such as "weight/exp_avg"
};

struct TrainingState {
  std::int64_t step = 0;  // the next to run
  int seed = 0;
  int microbatches = 1;  // of the whole batch
  int microbatch_size = 1;
  int gradient_groups = 1;  // of microbatches, whose gradients are added up first
  double loss_scale = 1;
  int steps_since_overflow = 0;
  std::string optimizer;  // its kind, such as "adamw"
  std::string precision;  // such as "float32"
  std::string device;  // that computed: "avx2", "the best of …", "NVIDIA H200"; empty: not known
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

/// What one part of a job holds; its tensors are nobody else's from here on.
struct Snapshot {
  TrainingState training;
  std::vector<LayerState> layers;
};

/// A word that no other start of a job has drawn.
std::string new_job_id();

struct CheckpointOptions {
  /// Several processes may write one checkpoint: each is a part of it, and part 0 completes it. A
  /// tensor comes from one part, or in slices from several.
  int part = 0;
  int parts = 1;
  /// The same for all parts, and another whenever the job is started: drawn by part 0 and sent to
  /// the others. It tells a part from one that a killed job has left. May be empty with one part.
  std::string job{};
  int keep = 2;                 // newest whole checkpoints; older ones are removed
  plan::Seconds patience{600};  // how long part 0 waits for the others
  std::function<void(const std::string&)> report{};  // of failures, on the writing thread
};

/// Writes checkpoints while training goes on. A write that fails never throws into training: its
/// temporary files are removed, the checkpoints before it stay, and the failure is told.
class CheckpointWriter {
 public:
  /// Removes what killed jobs have left of unfinished checkpoints. Throws InputError for options
  /// that cannot be, or a folder that cannot be made.
  CheckpointWriter(std::filesystem::path folder, CheckpointOptions options);
  /// Waits for the write under way, and with it for the other parts: `abandon` first when they
  /// have failed.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Starts to write and returns. One write is under way at most: a second save waits for the
  /// first and is never left out, as all parts must write the same steps.
  void save(Snapshot snapshot);
  /// Blocks until nothing is being written.
  void wait();
  /// Part 0 no longer waits for the other parts, now or later: they have failed.
  void abandon() { abandoned_ = true; }

  /// What went wrong with the last write that ended; nothing when all went well.
  std::optional<std::string> failure() const;
  /// The step of the last checkpoint that is on the disk; for other parts than 0 their files of it.
  std::optional<std::int64_t> written() const;

 private:
  void write(const Snapshot& snapshot);
  void write_to(const std::filesystem::path& unfinished, const Snapshot& snapshot);
  void give_up(const std::filesystem::path& unfinished, const TrainingState& training,
               const std::string& why);

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::atomic<bool> abandoned_ = false;
  std::thread thread_;
  mutable std::mutex mutex_;  // of the two below
  std::optional<std::string> failure_;
  std::optional<std::int64_t> written_;
};

struct LayerShape {
  std::string name;
  std::vector<TensorShape> parameters;
};

LayerShape shape_of(const LayerState& layer);

struct Manifest;  // what manifest.json says

/// A checkpoint on the disk. Everything throws InputError that names the file and what is wrong
/// with it.
class Checkpoint {
 public:
  /// The one in `folder`, such as FOLDER/step_00000010: its manifest is checked, and whether its
  /// files are there in full size.
  static Checkpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const TrainingState& training() const;
  std::vector<LayerShape> layers() const;
  /// Layer `index`, with the checksums of its files checked. Slices are put together: a tensor that
  /// was saved in slices comes back whole, but flat.
  LayerState layer(int index) const;
  /// Reads all files and checks them against their checksums.
  void verify() const;

 private:
  Checkpoint(std::filesystem::path folder, std::shared_ptr<const Manifest> manifest);
  std::filesystem::path folder_;
  std::shared_ptr<const Manifest> manifest_;
};

struct CheckpointInfo {
  std::filesystem::path folder;
  std::int64_t step = 0;
  plan::Bytes size;
  std::string damage;  // empty: nothing is missing; the contents of its files are not looked at
};

/// Newest first, with those that were never completed. None when there is no such folder.
std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder);

/// The newest checkpoint of `folder` that is whole, after a check of all its contents. Each newer
/// one that is damaged or incomplete is told to `report`, with what is wrong with it. Throws
/// InputError when none is left. Of a job's processes one calls this, the others `open` the same.
Checkpoint open_newest(const std::filesystem::path& folder,
                       const std::function<void(const std::string&)>& report);

/// Whether a checkpoint can be loaded into a model: every reason against it, in words.
struct LoadCheck {
  std::vector<std::string> obstacles;    // it cannot be loaded
  std::vector<std::string> differences;  // it continues, but not bit-identically
};

/// Partition, schedule, ranks and replicas make no difference, so they are not asked for.
LoadCheck check_load(const Checkpoint& checkpoint, const std::vector<LayerShape>& wanted,
                     const TrainingState& wanted_training);

}  // namespace pipewright::exec
