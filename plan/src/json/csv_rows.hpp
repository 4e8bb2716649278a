#pragma once

// The outer shape of torch's schedule files, in both dialects: one row per rank, cells separated by
// commas, quoted or not, empty cells idle.

#include <string_view>
#include <vector>

namespace pipewright::plan {

/// Cells without blanks and quotes around them; the line's end may be that of Windows.
std::vector<std::vector<std::string_view>> csv_rows(std::string_view text);

/// The members of a fused pair "(1F2;0B1)OVERLAP_F_B"; empty when the cell is none.
std::vector<std::string_view> fused_members(std::string_view cell);

}  // namespace pipewright::plan
