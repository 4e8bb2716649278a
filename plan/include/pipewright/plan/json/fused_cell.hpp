#pragma once

// Text form of a fused pair in schedules, Programs and reports: "(1F2;0B1)OVERLAP_F_B".

#include <string>
#include <string_view>

namespace pipewright::plan {

inline constexpr std::string_view fused_cell_end = ")OVERLAP_F_B";

/// Joins the texts of the two actions of a fused pair.
inline std::string fused_cell(std::string_view first, std::string_view second) {
  std::string text("(");
  text.append(first).append(";").append(second).append(fused_cell_end);
  return text;
}

}  // namespace pipewright::plan
