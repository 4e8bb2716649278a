#pragma once

// Data that comes one microbatch after the other, from an iterator of the user's. Its end is an
// answer, not an error.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// One microbatch: what the first stage takes, and what the last stage's loss compares with.
struct Batch {
  Tensors inputs;
  Tensors targets;
  double counts = 1;        // in the batch's mean loss: such as its tokens that are no padding
  NamedTensors keywords{};  // of layers that name them (LayerSpec::keywords)
};

/// The next microbatch; nothing at the end of the data, and from then on.
using BatchSource = std::function<std::optional<Batch>()>;

/// `all` in pieces of `size` samples along dimension 0, in order; samples that fill no piece are
/// left out. Throws InputError when the tensors are not equally long, or shorter than one piece.
BatchSource batches_of(const Batch& all, int size);

/// These, in order.
BatchSource batches_of(std::vector<Batch> microbatches);

/// The microbatches of a Dataset, `microbatches` per step, step after step: they never end. The
/// dataset outlives the source.
BatchSource batches_of(const Dataset& data, int microbatches, int first_step = 0);

/// Data that a function gives, by step and microbatch of the whole batch: pure, and safe to call
/// from several threads. `weight_at`: as Dataset::weight has it; empty: 1, whatever the batches say
/// that they count.
std::unique_ptr<Dataset> dataset_of(std::function<Batch(int step, int microbatch)> batch_at,
                                    std::function<double(int step, int microbatch)> weight_at = {});

/// Starts over when the data end, so that they never do, unless there are none at all.
class RepeatingLoader {
 public:
  explicit RepeatingLoader(std::function<BatchSource()> open);
  std::optional<Batch> operator()();

 private:
  std::function<BatchSource()> open_;
  BatchSource source_;
};

/// What the stages of this process read: the first one inputs, the last one targets, and of
/// pipelines side by side each its part of the batch.
struct DataNeeds {
  bool inputs = true;
  bool targets = true;
  bool keywords = false;  // a layer names some
  int part = 0;
  int parts = 1;  // 1: the whole batch
};

/// What of a batch is trained on: the mean loss over what its microbatches count, or the sum of
/// their losses as they are.
enum class LossOf { Mean, Sum };

/// Gives the ranks of this process the microbatches of one step by index, read ahead from an
/// iterator. What is not needed here is let go at once; where nothing is, nothing is read.
class StepBuffer final : public Dataset {
 public:
  explicit StepBuffer(DataNeeds needs = {}, LossOf loss = LossOf::Mean)
      : needs_(needs), loss_(loss) {}

  /// Reads the batch of `step`, in place of the one before. False when the data ends before it is
  /// complete: the rest of the data is let go. Not while ranks read.
  bool fill(BatchSource& source, int step, int microbatches);

  /// From now on, where `fill` has an empty source, all that is asked for is asked of `data`, which
  /// has no end. Null: no longer.
  void follow(std::shared_ptr<const Dataset> data);
  bool follows_data() const { return followed_ != nullptr; }

  /// Throws InputError for another step, or a microbatch that it does not have.
  Tensors inputs(int step, int microbatch) const override;
  Tensors targets(int step, int microbatch) const override;
  double weight(int step, int microbatch) const override;
  NamedTensors keywords(int step, int microbatch) const override;

 private:
  const Batch& at(int step, int microbatch) const;

  DataNeeds needs_;
  LossOf loss_;
  std::shared_ptr<const Dataset> followed_;
  bool follows_ = false;  // in this step
  int step_ = 0;
  int count_ = 0;                      // microbatches of the batch
  double mean_count_ = 1;              // of all of them
  std::map<int, Batch> microbatches_;  // of this part
};

}  // namespace pipewright::exec
