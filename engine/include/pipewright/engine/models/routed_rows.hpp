#pragma once

// How many rows a mixture sends to each of its experts, for whoever measures that.

#include <cstdint>
#include <vector>

namespace pipewright::engine {

/// While it lives, the mixtures that run on its thread tell it; of two that live, the inner one.
class RoutedRows {
 public:
  RoutedRows();
  ~RoutedRows();
  RoutedRows(const RoutedRows&) = delete;
  RoutedRows& operator=(const RoutedRows&) = delete;

  /// By expert, of all forwards together; empty: no mixture has run.
  const std::vector<std::int64_t>& by_expert() const { return rows_; }

  /// From a mixture's forward.
  static void note(const std::vector<std::int64_t>& rows);

 private:
  std::vector<std::int64_t> rows_;
  RoutedRows* outer_;
};

}  // namespace pipewright::engine
