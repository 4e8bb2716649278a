#pragma once

// Observes a training from outside: its finished steps, the predicted band of step times, and an
// alarm when steps leave the band. Starts nothing.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/record/step_log.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::gui {

/// The range in which a step's time should be.
struct PredictedBand {
  double predicted_s = 0;
  double least_s = 0;
  double most_s = 0;
  friend bool operator==(const PredictedBand&, const PredictedBand&) = default;
};
/// Returns the band. Its relative half-width is the drift of the machine's speed while costs were
/// measured, and at least 5 %.
PredictedBand band_of(double predicted_s, double drift);

struct Alarm {
  double step_s = 0;  // the median of the last steps
  PredictedBand band;
  int rank = -1;      // the rank furthest from its prediction; -1: unknown
  double factor = 1;  // its compute time divided by the predicted one
  std::string text;   // "A step takes 15.2 ms, and 12.0 to 13.3 ms were predicted: rank 2 …", or
                      // the ranks that the training itself reports as slow
};
/// Returns the alarm of the last steps, without the first two of the training. Returns nothing if
/// there are fewer than three, or if they are within the band and the training reports no slow
/// rank. The tables identify the rank; either may be null.
std::optional<Alarm> alarm_of(const PredictedBand& band, const std::vector<loop::StepLine>& steps,
                              const plan::EventTable* predicted, const plan::EventTable* measured);

/// Returns the compute time of each rank, in seconds.
std::vector<double> busy_of(const plan::EventTable& table);

/// The folder into which a training writes its steps.
class RunWatch {
 public:
  explicit RunWatch(std::filesystem::path folder);

  /// Reads new data; returns false without any. Never throws: incomplete data are read later.
  bool look();

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<loop::StepLine>& steps() const { return steps_; }
  const std::optional<PredictedBand>& band() const { return band_; }
  const std::optional<Alarm>& alarm() const { return alarm_; }
  /// Returns how often the last step's timeline was rewritten.
  int timelines() const { return timelines_; }

 private:
  bool look_at_prediction();
  bool look_at_last_step();

  std::filesystem::path folder_;
  loop::StepReader reader_;
  std::vector<loop::StepLine> steps_;
  std::optional<PredictedBand> band_;
  std::optional<Alarm> alarm_;
  std::optional<plan::EventTable> predicted_, last_;
  std::filesystem::file_time_type predicted_at_{}, last_at_{};
  int timelines_ = 0;
};

}  // namespace pipewright::gui
