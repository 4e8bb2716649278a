#pragma once

// Maps tokens to the part of the vocabulary that a tensor group has.

#include <cstdint>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct GroupIndices {
  at::Tensor local;      // index within the group's words; 0 for words of other groups
  at::Tensor elsewhere;  // bool; true for words of other groups
};

/// Maps indices of a vocabulary of `vocabulary` words to group `group` of `groups`.
GroupIndices indices_in_group(const at::Tensor& indices, std::int64_t vocabulary, int group,
                              int groups);

/// Throws InputError if an index is not in the vocabulary; with `may_be_ignored`, `ignored_target`
/// is accepted as well. Checks CPU tensors only, because reading from a GPU would block.
void require_in_vocabulary(const char* what, const at::Tensor& indices, std::int64_t vocabulary,
                           bool may_be_ignored = false);

}  // namespace pipewright::exec
