#pragma once

// What of a training goes into a checkpoint.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// Which part of a tensor that shards share out, as CutParameter and PartSeat say it. Of one: all
/// of it.
struct TensorPart {
  int dimension = 0;
  int blocks = 1;
  std::int64_t length = 0;  // of the whole, along that dimension
  int index = 0;
  int count = 1;
  int experts = 1;  // dimension 0 is cut in so many first
  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

struct NamedTensor {
  std::string name;
  at::Tensor value;
  /// With `whole` >= 0, `value` is the numbers [begin, begin + numel) of a tensor of `whole`
  /// numbers, flat: what one replica holds of sharded optimizer state.
  std::int64_t begin = 0;
  std::int64_t whole = -1;
  /// `value`, or what it is a slice of, is this part. Parts of a tensor have its name.
  TensorPart part{};
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
  int tensor_groups = 1;    // of products over widths that shards share out
  double loss_scale = 1;
  int steps_since_overflow = 0;
  std::string optimizer;  // its kind, such as "adamw"
  std::string precision;  // such as "float32"
  std::string device;  // that computed: "avx2", "the best of …", "NVIDIA H200"; empty: not known
  /// Of the data, where an engine reads them one by one; 0: `microbatches` a step.
  std::int64_t microbatches_read = 0;
  std::map<std::string, std::string> notes{};  // of whoever trains, such as a number of a run
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

/// What one part of a job holds; its tensors are nobody else's from here on, or nobody changes them
/// until it is written.
struct Snapshot {
  TrainingState training;
  std::vector<LayerState> layers;
};

/// Of all its tensors.
plan::Bytes size_of(const Snapshot& snapshot);
/// Whether this process has memory for copies of them, and a tenth more.
bool has_room_for_copy(const Snapshot& snapshot);
/// With copies of the tensors that somebody else has, too.
Snapshot copies_of(Snapshot snapshot);

}  // namespace pipewright::exec
