#pragma once

// Counts of the tokens that mixture-of-experts layers route to each expert, for measurements.

#include <cstdint>
#include <vector>

namespace pipewright::engine {

/// A listener for the mixtures that run on its thread while it exists. If listeners are nested, the
/// innermost one counts.
class ExpertLoadRecorder {
 public:
  ExpertLoadRecorder();
  ~ExpertLoadRecorder();
  ExpertLoadRecorder(const ExpertLoadRecorder&) = delete;
  ExpertLoadRecorder& operator=(const ExpertLoadRecorder&) = delete;

  /// Returns the rows per expert, summed over all forwards. Empty: no mixture has run.
  const std::vector<std::int64_t>& by_expert() const { return rows_; }

  /// Reports the rows of a mixture's forward.
  static void note(const std::vector<std::int64_t>& rows);

 private:
  std::vector<std::int64_t> rows_;
  ExpertLoadRecorder* outer_;
};

}  // namespace pipewright::engine
