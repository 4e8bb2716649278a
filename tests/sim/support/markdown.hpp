#pragma once

// Tables for docs/accuracy.md, and the check that they stand there.

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace pipewright::test {

inline std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    text += fmt::format("| {} |\n", fmt::join(rows[row], " | "));
    if (row == 0)
      text += fmt::format("|{}\n", fmt::join(std::vector<std::string>(rows[0].size(), "---|"), ""));
  }
  return text;
}

/// "−4.5 %"
inline std::string percent(double fraction) {
  const double value = std::round(1000 * fraction) / 10;
  return fmt::format("{}{:.1f} %", value < 0 ? "−" : "+", std::abs(value));
}

/// The error of a prediction, as a fraction of what was measured.
inline double error_of_prediction(double predicted, double measured) {
  return predicted / measured - 1;
}

/// Of the sizes of the errors.
inline double median_size(std::vector<double> errors) {
  for (double& error : errors)
    error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const auto middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

/// The text of docs/accuracy.md.
inline std::string accuracy_document() {
  std::ifstream stream(std::string(PIPEWRIGHT_SOURCE_DIR) + "/docs/accuracy.md");
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace pipewright::test
