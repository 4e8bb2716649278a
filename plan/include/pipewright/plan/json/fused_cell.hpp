#pragma once

// How schedules, Programs and reports write a fused pair: "(1F2;0B1)OVERLAP_F_B".

#include <string>
#include <string_view>

namespace pipewright::plan {

inline constexpr std::string_view fused_cell_end = ")OVERLAP_F_B";

/// Of the texts of its two actions.
inline std::string fused_cell(std::string_view first, std::string_view second) {
  std::string text("(");
  text.append(first).append(";").append(second).append(fused_cell_end);
  return text;
}

}  // namespace pipewright::plan
