#pragma once

// What Python's torch.save has written: a zip archive with a pickle and the numbers of tensors. No
// pickle is run: one that holds more than tensors, containers and plain values is refused by the
// name of what else it asks for. Numbers are read when they are looked at.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "pipewright/exec/checkpoint/named_weights.hpp"

namespace pipewright::exec {

/// All tensors of the file, by the keys that lead to them, which "/" joins: "weight" of a layer's
/// state_dict, "module/0.weight" of one under "module", "1" of a list's second entry; "" of a
/// tensor by itself. Views of the mapped file, which are not written to. Throws InputError that
/// names the file, what is wrong and, within the pickle, its offset.
StateDict read_torch_file(const std::filesystem::path& file);

/// The same of bytes [begin, end) of a tensor of bytes, which stands for `file`.
StateDict parse_torch_file(const at::Tensor& bytes, std::int64_t begin, std::int64_t end,
                           const std::string& file);

/// Of such tensors those below a key, without it: of "module" "0.weight".
StateDict below(const StateDict& tensors, const std::string& key);

}  // namespace pipewright::exec
