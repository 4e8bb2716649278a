#pragma once

// Batches of samples that are identified by number, so that each rank reads only the samples of its
// own microbatches.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/exec/data/loader.hpp"

namespace pipewright::exec {

/// A data set of `count` samples. `at(number)` returns one, without a batch dimension. It must be
/// pure, and safe to call from several threads.
struct Samples {
  std::int64_t count = 0;
  std::function<Batch(std::int64_t number)> at;
};

/// Returns the samples along dimension 0 of tensors of equal length. Throws InputError if the
/// lengths differ.
Samples samples_of(const Batch& all);

/// The treatment of an epoch's last samples if they do not fill a batch. Drop: they are omitted.
/// Pad: the batch is filled with the first samples of the epoch.
enum class LastBatch { Drop, Pad };

struct LoaderOptions {
  int train_batch_size = 1;  // samples of a step, over all pipelines, as in EngineOptions
  int microbatch_size = 1;
  bool shuffle = true;  // in another order in each epoch, sampled from the seed
  int seed = 0;
  LastBatch last = LastBatch::Drop;
  /// A user's order: returns the number of the sample at a position of an epoch, 0 to count - 1.
  std::function<std::int64_t(int epoch, std::int64_t place)> sampler{};
};

/// Returns the steps of an epoch. Throws InputError if the samples do not fill one, or if the sizes
/// do not divide.
int steps_per_epoch(std::int64_t samples, const LoaderOptions& options);

/// Makes a dataset that repeats the samples, epoch after epoch, without end, and can start at any
/// step. Samples of a microbatch are stacked along a new dimension 0. Throws InputError as
/// `steps_per_epoch` does, and later if a sampler returns a number that no sample has.
std::unique_ptr<Dataset> load_samples(Samples samples, LoaderOptions options);

}  // namespace pipewright::exec
