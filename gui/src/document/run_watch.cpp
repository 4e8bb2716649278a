#include "pipewright/gui/document/run_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/plan/timeline/trace.hpp"

namespace pipewright::gui {
namespace {

constexpr double least_drift = 0.05;
constexpr std::size_t warm_up = 2;  // steps, as in a run's report
constexpr std::size_t fewest = 3;
constexpr std::size_t looked_at = 5;  // a single slow step does not raise an alarm

/// Returns true if the file was written since `before`, and updates `before`.
bool is_new(const std::filesystem::path& file, std::filesystem::file_time_type& before) {
  std::error_code absent;
  const auto written = std::filesystem::last_write_time(file, absent);
  if (absent || written == before)
    return false;
  before = written;
  return true;
}

}  // namespace

PredictedBand band_of(double predicted_s, double drift) {
  const double part = std::min(std::max(drift, least_drift), 1.0);
  return {predicted_s, predicted_s * (1 - part), predicted_s * (1 + part)};
}

std::vector<double> busy_of(const plan::EventTable& table) {
  std::vector<double> busy(static_cast<std::size_t>(table.ranks), 0);
  for (const plan::EventTrack& track : table.tracks)
    if (track.row == plan::Row::Compute)
      for (std::uint64_t event = track.begin; event < track.end; ++event)
        busy[static_cast<std::size_t>(track.rank)] += table.end[event] - table.start[event];
  return busy;
}

std::optional<Alarm> alarm_of(const PredictedBand& band, const std::vector<loop::StepLine>& steps,
                              const plan::EventTable* predicted, const plan::EventTable* measured) {
  if (steps.size() < warm_up + fewest)
    return {};
  std::vector<double> last;
  for (std::size_t i = std::max(warm_up, steps.size() - std::min(steps.size(), looked_at));
       i < steps.size(); ++i)
    last.push_back(steps[i].seconds);
  Alarm alarm{.step_s = plan::median(last), .band = band, .text = {}};
  alarm.text = steps.back().slow;  // what the ranks know about each other, which is more than can
                                   // be seen here
  if (!alarm.text.empty())
    return alarm;
  const bool slow = alarm.step_s > band.most_s;
  if (!slow && alarm.step_s >= band.least_s)
    return {};
  alarm.text =
      fmt::format("A step takes {}, and {} to {} were predicted", plan::time_text(alarm.step_s),
                  plan::time_text(band.least_s), plan::time_text(band.most_s));
  if (predicted != nullptr && measured != nullptr && predicted->ranks == measured->ranks) {
    const std::vector<double> wanted = busy_of(*predicted), took = busy_of(*measured);
    for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
      if (wanted[rank] <= 0 || took[rank] <= 0)
        continue;
      const double factor = took[rank] / wanted[rank];
      if (alarm.rank < 0 || (slow ? factor > alarm.factor : factor < alarm.factor)) {
        alarm.rank = static_cast<int>(rank);
        alarm.factor = factor;
      }
    }
  }
  const double percent = 100 * (alarm.factor - 1);
  if (alarm.rank >= 0 && slow == (alarm.factor > 1) && std::abs(percent) >= 2)
    alarm.text += fmt::format(": rank {} computes {:.0f} % {} than predicted", alarm.rank,
                              std::abs(percent), slow ? "longer" : "shorter");
  else if (alarm.rank >= 0)
    alarm.text += ": ranks compute as predicted, so the cause is transfers and waiting";
  return alarm;
}

RunWatch::RunWatch(std::filesystem::path folder)
    : folder_(std::move(folder)), reader_(folder_ / "steps.jsonl") {}

bool RunWatch::look_at_prediction() {
  const auto file = folder_ / "predicted.trace.json";
  if (!is_new(file, predicted_at_))
    return false;
  try {
    predicted_ = plan::table_of(plan::timeline_from_trace(plan::JsonDocument::read(file)));
    const auto costs =
        plan::layer_costs_from_json(plan::JsonDocument::read(folder_ / "costs.json"));
    band_ = band_of(predicted_->length.value, costs.drift);
    return true;
  } catch (const std::exception&) {  // incomplete
    predicted_at_ = {};
    return false;
  }
}

bool RunWatch::look_at_last_step() {
  const auto file = folder_ / "last_step.trace.json";
  if (!is_new(file, last_at_))
    return false;
  try {
    last_ = plan::table_of(plan::timeline_from_trace(plan::JsonDocument::read(file)));
    ++timelines_;
    return true;
  } catch (const std::exception&) {
    return false;  // the next version follows at once
  }
}

bool RunWatch::look() {
  bool changed = look_at_prediction();
  changed = look_at_last_step() || changed;
  for (loop::StepLine& step : reader_.next()) {
    // A resumed training repeats the steps after its checkpoint.
    while (!steps_.empty() && steps_.back().step >= step.step)
      steps_.pop_back();
    steps_.push_back(std::move(step));
    changed = true;
  }
  if (changed && band_)
    alarm_ =
        alarm_of(*band_, steps_, predicted_ ? &*predicted_ : nullptr, last_ ? &*last_ : nullptr);
  return changed;
}

}  // namespace pipewright::gui
