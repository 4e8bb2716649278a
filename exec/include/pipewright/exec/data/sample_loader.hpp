#pragma once

// Batches from samples that are known by their numbers: each rank reads those of its own
// microbatches alone.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/exec/data/loader.hpp"

namespace pipewright::exec {

/// `at(number)` is one sample of `count`, without a dimension for the batch. Pure, and safe to call
/// from several threads.
struct Samples {
  std::int64_t count = 0;
  std::function<Batch(std::int64_t number)> at;
};

/// Those along dimension 0 of some tensors, which are equally long. Throws InputError otherwise.
Samples samples_of(const Batch& all);

/// What becomes of the last samples of an epoch that fill no batch: they are left out, or the first
/// ones of the epoch are taken once more.
enum class LastBatch { Drop, Pad };

struct LoaderOptions {
  int train_batch_size = 1;  // samples of a step, over all pipelines, as in EngineOptions
  int microbatch_size = 1;
  bool shuffle = true;  // in each epoch in another order, drawn from the seed
  int seed = 0;
  LastBatch last = LastBatch::Drop;
  /// An order of one's own: the number of the sample at a place of an epoch, 0 to count - 1.
  std::function<std::int64_t(int epoch, std::int64_t place)> sampler{};
};

/// Steps of an epoch. Throws InputError when the samples fill none, or the sizes do not divide.
int steps_per_epoch(std::int64_t samples, const LoaderOptions& options);

/// The samples, epoch after epoch: it never ends, and begins anywhere. Samples of a microbatch are
/// stacked along a new dimension 0. Throws InputError as `steps_per_epoch`, and later for a number
/// that a sampler gives and no sample has.
std::unique_ptr<Dataset> load_samples(Samples samples, LoaderOptions options);

}  // namespace pipewright::exec
