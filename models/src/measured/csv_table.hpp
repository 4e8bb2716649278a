#pragma once

// A CSV file with a header, as cells with their positions. Cells may be quoted, with doubled quotes
// inside (RFC 4180).

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

struct CsvCell {
  std::string text;  // without quotes and surrounding blanks
  int column = 1;    // of the first character, counted from 1
};

struct CsvLine {
  int line = 1;
  std::vector<CsvCell> cells;
};

/// Returns all lines that are not blank. Reports an unclosed quote in `faults`.
std::vector<CsvLine> csv_lines(std::string_view text, const std::string& name,
                               std::vector<std::string>& faults);

}  // namespace pipewright::models
