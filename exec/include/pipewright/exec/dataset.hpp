#pragma once

// Where microbatches come from: a pure function of step and microbatch, so that any rank can fetch
// its part by itself, and two runs read the same.

#include <filesystem>
#include <memory>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Microbatches are counted over the whole batch: replica 1 of two with 4 each reads 4 to 7. All
/// functions are safe to call from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// The first stage's input. Where it is several tensors, override `inputs`.
  virtual at::Tensor input(int step, int microbatch) const;
  /// What the last stage's loss compares with.
  virtual at::Tensor target(int step, int microbatch) const;
  virtual Tensors inputs(int step, int microbatch) const { return {input(step, microbatch)}; }
  virtual Tensors targets(int step, int microbatch) const { return {target(step, microbatch)}; }
};

struct BatchShape {
  int microbatches = 1;     // of a step
  int microbatch_size = 1;  // samples
  int seed = 0;
};

/// Random windows of `sequence` bytes of a file; the target is the window one byte later. Both are
/// int64 [microbatch_size, sequence]. Throws InputError when the file cannot be read or is too
/// short.
std::unique_ptr<Dataset> open_text(const std::filesystem::path& file, int sequence,
                                   const BatchShape& shape);

/// CIFAR-10's binary version: all data_batch_*.bin of a folder, 3073-byte records of a label and
/// 3 x 32 x 32 pixels. Images are normalised by channel and enlarged to `image_size` (bilinear):
/// float32 [microbatch_size, 3, image_size, image_size]; targets are int64 [microbatch_size].
/// Records are taken in an order shuffled by the seed once an epoch. Throws InputError that names
/// file and size when there is none, when one is empty or no multiple of 3073 bytes long, or when a
/// label is above 9.
std::unique_ptr<Dataset> open_cifar10(const std::filesystem::path& folder, int image_size,
                                      const BatchShape& shape);

}  // namespace pipewright::exec
