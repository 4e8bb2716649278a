#include "pipewright/loop_torch/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

/// A training may last for weeks.
constexpr std::size_t most_kept_steps = 256;

}  // namespace

Recorder::Recorder(const plan::Program& program, exec::JobGrid grid)
    : grid_(std::move(grid)), current_(program.ranks.size()) {
  for (std::size_t rank = 0; rank < current_.size(); ++rank)
    current_[rank].reserve(program.ranks[rank].size());
}

exec::Observer Recorder::observer() {
  return [this, recorded = grid_.first_pipeline()](const exec::InstructionRecord& record) {
    const auto found = std::find(recorded.begin(), recorded.end(), record.rank);
    if (found == recorded.end())
      return;
    const auto rank = static_cast<std::size_t>(found - recorded.begin());
    current_[rank].push_back(record);
    current_[rank].back().rank = static_cast<int>(rank);
  };
}

void Recorder::end_step(const exec::StepResult& step) {
  if (steps_.size() == most_kept_steps)
    steps_.erase(steps_.begin());
  steps_.push_back({step.begin, step.duration, current_});
  for (auto& records : current_)
    records.clear();
}

plan::Timeline timeline_of(const StepRecord& step, const std::string& name) {
  plan::Timeline timeline{.name = name,
                          .ranks = static_cast<int>(step.ranks.size()),
                          .length = step.duration,
                          .spans = {},
                          .memory = {}};
  for (const auto& records : step.ranks) {
    const auto first_sample = static_cast<std::ptrdiff_t>(timeline.memory.size());
    for (const exec::InstructionRecord& record : records) {
      const auto row = plan::row_of(record.instruction.kind);
      timeline.spans.push_back({record.rank, row, to_string(record.instruction), record.start,
                                record.end, record.shards, record.late});
      if (row != plan::Row::Compute)
        continue;
      timeline.memory.push_back({record.rank, record.start, record.peak});
      timeline.memory.push_back({record.rank, record.end, record.held_after});
    }
    // Two that took turns overlap.
    std::stable_sort(timeline.memory.begin() + first_sample, timeline.memory.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return timeline;
}

std::size_t typical_step(const std::vector<StepRecord>& steps, std::size_t skip) {
  std::vector<double> durations;
  for (std::size_t step = skip; step < steps.size(); ++step)
    durations.push_back(steps[step].duration.value);
  const double middle = plan::median(durations);
  const auto nearest = std::min_element(
      durations.begin(), durations.end(),
      [&](double a, double b) { return std::abs(a - middle) < std::abs(b - middle); });
  return skip + static_cast<std::size_t>(nearest - durations.begin());
}

}  // namespace pipewright::loop
