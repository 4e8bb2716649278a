#pragma once

// The columns that a table of runs can have, each in one line: its names, what it sets, what it
// may hold.

#include <functional>
#include <string>
#include <vector>

#include "run_row.hpp"

namespace pipewright::models {

struct RunColumn {
  std::vector<std::string> names;  // the first is ours
  bool needed = false;
  /// Sets the value; answers what would be right when the text is not.
  std::function<std::string(RunRow&, const std::string&)> read;
  bool tells_time = false;  // of an iteration
};
const std::vector<RunColumn>& run_columns();

}  // namespace pipewright::models
