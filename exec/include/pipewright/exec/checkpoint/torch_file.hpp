#pragma once

// Reads files of Python's torch.save: a zip archive with a pickle and the numbers of tensors. No
// pickle is executed: one that contains more than tensors, containers and plain values is rejected
// with the name of the first other object. Numbers are read on first access.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "pipewright/exec/checkpoint/named_weights.hpp"

namespace pipewright::exec {

/// Returns all tensors of the file under their keys, joined by "/". An entry of a layer's
/// state_dict is "weight", one under "module" is "module/0.weight", a list's second entry is "1",
/// and a single tensor is "". They are read-only views of the mapped file. Throws InputError that
/// names the file, what is wrong and, within the pickle, its offset.
StateDict read_torch_file(const std::filesystem::path& file);

/// Does the same with bytes [begin, end) of a tensor of bytes; `file` is the name for messages.
StateDict parse_torch_file(const at::Tensor& bytes, std::int64_t begin, std::int64_t end,
                           const std::string& file);

/// Returns the tensors below a key, with the key removed from their names: for "module",
/// "0.weight".
StateDict below(const StateDict& tensors, const std::string& key);

}  // namespace pipewright::exec
