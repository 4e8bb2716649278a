#pragma once

// Tokens, as a group of the vocabulary sees them: which of them are its own, and where.

#include <cstdint>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct GroupIndices {
  at::Tensor local;      // from the group's first on; 0 for those of other groups
  at::Tensor elsewhere;  // bool; which those are
};

/// Of so many words in `groups` groups.
GroupIndices indices_in_group(const at::Tensor& indices, std::int64_t vocabulary, int group,
                              int groups);

/// Throws InputError where an index is none of the vocabulary, nor, where targets may be ignored,
/// `ignored_target`. On a GPU nothing is read back.
void require_in_vocabulary(const char* what, const at::Tensor& indices, std::int64_t vocabulary,
                           bool may_be_ignored = false);

}  // namespace pipewright::exec
