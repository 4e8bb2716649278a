#pragma once

// The fused pairs of a Program, "(1F2;0B1)OVERLAP_F_B": whoever times or runs one finds it so.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Whether a pair begins at this place of a rank's list: right behind it stands what it is fused
/// with.
inline bool begins_pair(const std::vector<Instruction>& list, std::size_t at) {
  return list[at].fused_with_next && at + 1 < list.size() &&
         traits_of(list[at + 1].kind).action.has_value();
}

}  // namespace pipewright::plan
