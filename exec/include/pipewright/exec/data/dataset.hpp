#pragma once

// The interface of data sources. Data are pure functions of step and microbatch, so that each rank
// can read its part independently, and two runs read the same data.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// The target of positions that losses ignore, such as padding; torch's default `ignore_index`.
inline constexpr std::int64_t ignored_target = -100;

/// A source of microbatches. They are numbered over the whole batch: with two replicas of 4
/// microbatches each, replica 1 reads 4 to 7. All functions must be safe to call from several
/// threads. A rank reads inputs, targets and weights in the order of its LOADs, on one thread at a
/// time and usually ahead of them (`read_ahead.hpp`). It reads keywords on the thread that runs the
/// forward. Returned tensors must be in host memory.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Returns the first stage's input. If it is several tensors, override `inputs`.
  virtual at::Tensor input(int step, int microbatch) const;
  /// Returns the target for the last stage's loss.
  virtual at::Tensor target(int step, int microbatch) const;
  virtual Tensors inputs(int step, int microbatch) const { return {input(step, microbatch)}; }
  virtual Tensors targets(int step, int microbatch) const { return {target(step, microbatch)}; }
  /// Returns the weight of the microbatch's mean loss in the mean loss of the batch: the number of
  /// units that the loss counts, such as tokens without padding, divided by the mean of this number
  /// over the batch's microbatches. So the mean weight is 1.
  virtual double weight(int /*step*/, int /*microbatch*/) const { return 1; }
  /// Returns the microbatch's keyword arguments, for layers of any stage that name them
  /// (LayerSpec::keywords).
  virtual NamedTensors keywords(int /*step*/, int /*microbatch*/) const { return {}; }
};

struct BatchShape {
  int microbatches = 1;     // in a step, of all replicas
  int microbatch_size = 1;  // in samples
  int seed = 0;
  plan::SampleOrder order = plan::SampleOrder::Anywhere;
  int document_end = -1;  // as in plan::DataSource
};

}  // namespace pipewright::exec
