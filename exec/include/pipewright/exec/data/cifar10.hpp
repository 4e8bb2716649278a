#pragma once

// Images to train on.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// CIFAR-10's binary version: all data_batch_*.bin of a folder, 3073-byte records of a label and
/// 3 x 32 x 32 pixels. Images are normalised by channel and enlarged to `image_size` (bilinear):
/// float32 [microbatch_size, 3, image_size, image_size]; targets are int64 [microbatch_size].
/// Records are taken in an order shuffled by the seed once per epoch. Throws InputError that names
/// file and size when there is none, when one is empty or no multiple of 3073 bytes long, or when a
/// label is above 9.
std::unique_ptr<Dataset> open_cifar10(const std::filesystem::path& folder, int image_size,
                                      const BatchShape& shape);

}  // namespace pipewright::exec
