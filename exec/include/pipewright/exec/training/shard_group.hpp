#pragma once

// Tensor and expert parallelism from a layer's point of view. Tensor-parallel ranks partition its
// heads, widths and vocabulary (Megatron-LM, arXiv 1909.08053); expert-parallel ranks partition its
// experts (GShard, arXiv 2006.16668). A layer gets these groups of ranks and its own rank's place
// in them.

#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// The group of ranks that partition one stage, seen from one of them. All must call the same
/// functions in the same order. Calls within a forward or a backward block the rank's compute.
class TensorParallelGroup {
 public:
  virtual ~TensorParallelGroup() = default;
  /// Sends a part to each rank of the group and returns the parts for this one, in the order of
  /// ranks. Parts may differ in shape. The result may be another rank's own memory: do not modify
  /// it.
  virtual Tensors all_to_all(const Tensors& parts) = 0;
};

/// A rank's place in its expert-parallel group: the ranks of the same stage in several pipelines,
/// which partition its experts. Each has equally many consecutive experts, and gets the tokens of
/// all pipelines for them.
struct ExpertPlace {
  int index = 0;
  int count = 1;
  TensorParallelGroup* group = nullptr;  // outlives the layer; null if `count` is 1
  friend bool operator==(const ExpertPlace&, const ExpertPlace&) = default;
};

/// The part of a layer to build. Products over a partitioned width are summed in `groups` equal
/// parts, of which each tensor-parallel rank has equally many, so results do not depend on `count`.
struct TensorParallelPlace {
  int index = 0;
  int count = 1;
  int groups = 1;                        // a multiple of `count`
  TensorParallelGroup* group = nullptr;  // outlives the layer; null if `count` is 1
  ExpertPlace experts{};
  friend bool operator==(const TensorParallelPlace&, const TensorParallelPlace&) = default;
};

/// A parameter that tensor-parallel ranks partition along `dimension`. That dimension holds
/// `blocks` equal parts (three for queries, keys and values in one matrix), and each block is
/// partitioned (cut_parameter.hpp).
struct CutParameter {
  std::string name;
  int dimension = 0;
  int blocks = 1;
  std::int64_t whole = 0;  // the parameter's length in that dimension, over all ranks
  /// Number of experts along dimension 0, which must differ from `dimension`; each has a row or a
  /// matrix. The expert-parallel group partitions the experts, and tensor-parallel ranks the rest.
  /// 0: not an expert's parameter.
  int experts = 0;
  friend bool operator==(const CutParameter&, const CutParameter&) = default;
};

}  // namespace pipewright::exec
