#pragma once

// Tables for docs/accuracy.md, and the check that the page contains them.

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

/// Returns "−4.5 %".
inline std::string percent(double fraction) {
  const double value = std::round(1000 * fraction) / 10;
  return fmt::format("{}{:.1f} %", value < 0 ? "−" : "+", std::abs(value));
}

/// Returns the error of a prediction, as a fraction of the measurement.
inline double error_of_prediction(double predicted, double measured) {
  return predicted / measured - 1;
}

/// Returns the median of the absolute errors.
inline double median_size(std::vector<double> errors) {
  for (double& error : errors)
    error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const auto middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

/// Returns the text of docs/accuracy.md.
inline std::string accuracy_document() {
  std::ifstream stream(std::string(PIPEWRIGHT_SOURCE_DIR) + "/docs/accuracy.md");
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace pipewright::test
