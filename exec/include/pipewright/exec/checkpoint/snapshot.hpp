#pragma once

// The state of a training that goes into a checkpoint.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// The part of a tensor that a rank has under tensor and expert parallelism, as in CutParameter and
/// PartIndex. With `count` 1 it is the whole tensor.
struct TensorPart {
  int dimension = 0;
  int blocks = 1;
  std::int64_t length = 0;  // of the whole tensor, along `dimension`
  int index = 0;
  int count = 1;
  int experts = 1;  // expert-parallel ranks, which partition dimension 0 first
  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

struct NamedTensor {
  std::string name;
  at::Tensor value;
  /// If `whole` >= 0, `value` is a flat slice, elements [begin, begin + numel) of a tensor with
  /// `whole` elements: one replica's shard of the optimizer state.
  std::int64_t begin = 0;
  std::int64_t whole = -1;
  /// The part of the whole tensor that `value`, or the tensor it is a slice of, contains. All parts
  /// of a tensor have the same name.
  TensorPart part{};
};

struct LayerState {
  int index = 0;
  std::string name;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer;  // such as "weight/exp_avg"
};

struct TrainingState {
  std::int64_t step = 0;  // the next one to run
  int seed = 0;
  int microbatches = 1;  // in the whole batch
  int microbatch_size = 1;
  int gradient_groups = 1;  // groups of microbatches for gradient accumulation
  int tensor_groups = 1;    // equal parts in which products over partitioned widths are summed
  double loss_scale = 1;
  int steps_since_overflow = 0;
  std::string optimizer;  // its kind, such as "adamw"
  std::string precision;  // such as "float32"
  std::string device;     // such as "avx2", "the best of …" or "NVIDIA H200"; empty: unknown
  /// Number of microbatches read so far by an engine that reads them one by one; 0: `microbatches`
  /// in each step.
  std::int64_t microbatches_read = 0;
  std::map<std::string, std::string> notes{};  // set by the caller, such as a run's number
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

/// The state of one part of a job. Its tensors must not change until they are written.
struct Snapshot {
  TrainingState training;
  std::vector<LayerState> layers;
};

/// Returns the bytes of all its tensors.
plan::Bytes size_of(const Snapshot& snapshot);
/// Returns true if this process has memory for a copy of the tensors, and a tenth more.
bool has_room_for_copy(const Snapshot& snapshot);
/// Copies the tensors whose memory is also in use elsewhere.
Snapshot copies_of(Snapshot snapshot);

}  // namespace pipewright::exec
