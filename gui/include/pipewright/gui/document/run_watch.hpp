#pragma once

// What is seen of a training from outside: the steps that it has done, the band that was predicted
// for them, and an alarm when they leave it. Nothing here starts anything.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/record/step_log.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::gui {

/// Between which times a step should lie.
struct PredictedBand {
  double predicted_s = 0;
  double least_s = 0;
  double most_s = 0;
  friend bool operator==(const PredictedBand&, const PredictedBand&) = default;
};
/// The band reaches as far around the prediction as the machine's speed drifted while the costs
/// were measured, and at least 5 %.
PredictedBand band_of(double predicted_s, double drift);

struct Alarm {
  double step_s = 0;  // the median of the last steps
  PredictedBand band;
  int rank = -1;      // that is furthest from its prediction; -1: not known
  double factor = 1;  // its compute time over the predicted one
  std::string text;   // "a step takes 15.2 ms, and 12.0 to 13.3 ms were predicted: rank 2 …", or
                      // which ranks the training itself finds slow
};
/// The alarm of the last steps, the first two left out; nothing while there are fewer than three,
/// or they are within the band and the training finds no rank slow. The tables say which rank it
/// is; either may be null.
std::optional<Alarm> alarm_of(const PredictedBand& band, const std::vector<loop::StepLine>& steps,
                              const plan::EventTable* predicted, const plan::EventTable* measured);

/// Compute time of each rank, in seconds.
std::vector<double> busy_of(const plan::EventTable& table);

/// A folder in which a training leaves its steps.
class RunWatch {
 public:
  explicit RunWatch(std::filesystem::path folder);

  /// Reads what is new; false where nothing is. Never throws: what is half written comes later.
  bool look();

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<loop::StepLine>& steps() const { return steps_; }
  const std::optional<PredictedBand>& band() const { return band_; }
  const std::optional<Alarm>& alarm() const { return alarm_; }
  /// How often the last step's timeline was written anew.
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
