#pragma once

// Splits torch's schedule files, in both formats, into cells. A row is a rank; cells are separated
// by commas and may be quoted; an empty cell is idle time.

#include <string_view>
#include <vector>

namespace pipewright::plan {

/// Returns the cells of each row without surrounding blanks and quotes. Accepts Windows line ends.
std::vector<std::vector<std::string_view>> csv_rows(std::string_view text);

/// Returns the members of a fused pair "(1F2;0B1)OVERLAP_F_B"; empty if the cell is not one.
std::vector<std::string_view> fused_members(std::string_view cell);

}  // namespace pipewright::plan
