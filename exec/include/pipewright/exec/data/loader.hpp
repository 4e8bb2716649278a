#pragma once

// Data from a user's iterator, one microbatch after the other. The end of the data is a normal
// result, not an error.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// One microbatch: the first stage's inputs, and the targets for the last stage's loss.
struct Batch {
  Tensors inputs;
  Tensors targets;
  double counts = 1;        // weight in the batch's mean loss, such as its tokens without padding
  NamedTensors keywords{};  // for layers that name them (LayerSpec::keywords)
};

/// Returns the next microbatch; nothing once the data has ended.
using BatchSource = std::function<std::optional<Batch>()>;

/// Splits `all` into microbatches of `size` samples along dimension 0, in order; the remainder is
/// dropped. Throws InputError if the tensors differ in length, or have fewer samples than one
/// microbatch.
BatchSource batches_of(const Batch& all, int size);

/// Returns these microbatches in order.
BatchSource batches_of(std::vector<Batch> microbatches);

/// Returns the microbatches of a Dataset, `microbatches` per step, step after step without end. The
/// dataset must outlive the source.
BatchSource batches_of(const Dataset& data, int microbatches, int first_step = 0);

/// Makes a Dataset of a function of the step and the microbatch of the whole batch, which must be
/// pure and safe to call from several threads. `weight_at`: as Dataset::weight; empty: 1, and
/// Batch::counts is ignored.
std::unique_ptr<Dataset> dataset_of(std::function<Batch(int step, int microbatch)> batch_at,
                                    std::function<double(int step, int microbatch)> weight_at = {});

/// Starts over at the end of the data, so that it never ends unless there is no data at all.
class RepeatingLoader {
 public:
  explicit RepeatingLoader(std::function<BatchSource()> open);
  std::optional<Batch> operator()();

 private:
  std::function<BatchSource()> open_;
  BatchSource source_;
};

/// The data that this process needs: inputs for the first stage, targets for the last one, and with
/// several pipelines its pipeline's part of the batch.
struct DataNeeds {
  bool inputs = true;
  bool targets = true;
  bool keywords = false;  // true if a layer names some
  int part = 0;
  int parts = 1;  // 1: the whole batch
};

/// The loss to train on: the mean over all that the microbatches count, or the plain sum of their
/// losses.
enum class LossOf { Mean, Sum };

/// Holds the microbatches of one step, read ahead from an iterator, and gives them to the ranks of
/// this process by index. Data that this process does not need is dropped at once; if it needs
/// none, nothing is read.
class StepBuffer final : public Dataset {
 public:
  explicit StepBuffer(DataNeeds needs = {}, LossOf loss = LossOf::Mean)
      : needs_(needs), loss_(loss) {}

  /// Replaces the batch by that of `step`. Returns false if the data ends before the batch is
  /// complete; its remaining microbatches are dropped. Must not be called while ranks read.
  bool fill(BatchSource& source, int step, int microbatches);

  /// From now on, whenever `fill` is called with an empty source, takes all data from `data`, which
  /// never ends. Null: no longer.
  void follow(std::shared_ptr<const Dataset> data);
  bool follows_data() const { return followed_ != nullptr; }

  /// Throws InputError for another step, or a microbatch that is not in the buffer.
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
  double mean_count_ = 1;              // over all of them
  std::map<int, Batch> microbatches_;  // of this process's part
};

}  // namespace pipewright::exec
