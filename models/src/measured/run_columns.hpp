#pragma once

// The columns of a table of runs, one line each: names, target field and valid values.

#include <functional>
#include <string>
#include <vector>

#include "run_row.hpp"

namespace pipewright::models {

struct RunColumn {
  std::vector<std::string> names;  // the first is the canonical name
  bool needed = false;
  /// Sets the value. Returns a description of valid values if the text is invalid.
  std::function<std::string(RunRow&, const std::string&)> read;
  bool tells_time = false;  // gives the time per iteration
};
const std::vector<RunColumn>& run_columns();

}  // namespace pipewright::models
