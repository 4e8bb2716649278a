#pragma once

// Where microbatches come from: a pure function of step and microbatch, so that any rank can fetch
// its part by itself, and two runs read the same.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// A target that no loss counts, such as padding.
inline constexpr std::int64_t ignored_target = -100;

/// Microbatches are counted over the whole batch: replica 1 of two with 4 each reads 4 to 7. All
/// functions are safe to call from several threads: for each rank one at a time calls them, its
/// reader, in the order of the rank's LOADs and ahead of them (`read_ahead.hpp`). What they return
/// lies in the host's memory.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// The first stage's input. Where it is several tensors, override `inputs`.
  virtual at::Tensor input(int step, int microbatch) const;
  /// What the last stage's loss compares with.
  virtual at::Tensor target(int step, int microbatch) const;
  virtual Tensors inputs(int step, int microbatch) const { return {input(step, microbatch)}; }
  virtual Tensors targets(int step, int microbatch) const { return {target(step, microbatch)}; }
  /// Of the microbatch's mean loss in that of the whole batch, whose microbatches have a mean
  /// weight of 1: what it counts of the batch, such as tokens that are no padding, over the mean.
  virtual double weight(int /*step*/, int /*microbatch*/) const { return 1; }
  /// Keyword arguments of the microbatch, for layers of any stage that name them.
  virtual NamedTensors keywords(int /*step*/, int /*microbatch*/) const { return {}; }
};

struct BatchShape {
  int microbatches = 1;     // of a step
  int microbatch_size = 1;  // samples
  int seed = 0;
  plan::SampleOrder order = plan::SampleOrder::Anywhere;
  int document_end = -1;  // as in plan::DataSource
};

}  // namespace pipewright::exec
