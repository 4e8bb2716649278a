#pragma once

// Detection of the fused pairs of a Program, "(1F2;0B1)OVERLAP_F_B", for timing and running them.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns true if a pair begins at this position of a rank's list: the instruction is fused with
/// the next one, which is an action.
inline bool begins_pair(const std::vector<Instruction>& list, std::size_t at) {
  return list[at].fused_with_next && at + 1 < list.size() &&
         traits_of(list[at + 1].kind).action.has_value();
}

}  // namespace pipewright::plan
