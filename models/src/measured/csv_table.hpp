#pragma once

// A CSV file with a header, as cells that know where they stand. Cells may be quoted, with doubled
// quotes inside (RFC 4180).

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

struct CsvCell {
  std::string text;  // without quotes, and without blanks around it
  int column = 1;    // of its first letter, from 1
};

struct CsvLine {
  int line = 1;
  std::vector<CsvCell> cells;
};

/// All lines that are not blank. A quote that is never closed is reported in `faults`.
std::vector<CsvLine> csv_lines(std::string_view text, const std::string& name,
                               std::vector<std::string>& faults);

}  // namespace pipewright::models
