#pragma once

// Samples stored as tensors in one file, of any kind.

#include <filesystem>
#include <memory>
#include <vector>

#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Opens a safetensors file with the tensors "inputs" and "targets", [samples, …] each, or
/// "inputs.0", "inputs.1" and so on if there are several. Each epoch has all samples, in its own
/// order. `inputs` and `targets`: type and sizes of one sample. Throws InputError that names the
/// file and what is missing or has another type or size.
std::unique_ptr<Dataset> open_tensor_samples(const std::filesystem::path& file,
                                             const std::vector<TensorShape>& inputs,
                                             const std::vector<TensorShape>& targets,
                                             const BatchShape& shape);

}  // namespace pipewright::exec
