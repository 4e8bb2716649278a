#pragma once

// The CIFAR-10 data set of images.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Opens CIFAR-10's binary version: all data_batch_*.bin of a folder, 3073-byte records of a label
/// and 3 x 32 x 32 pixels. Images are normalized by channel and enlarged to `image_size`
/// (bilinear): float32 [microbatch_size, 3, image_size, image_size]. Targets are int64
/// [microbatch_size]. Each epoch shuffles the records by the seed. Throws InputError that names
/// file and size if there is no file, if one is empty or no multiple of 3073 bytes long, or if a
/// label is above 9.
std::unique_ptr<Dataset> open_cifar10(const std::filesystem::path& folder, int image_size,
                                      const BatchShape& shape);

}  // namespace pipewright::exec
