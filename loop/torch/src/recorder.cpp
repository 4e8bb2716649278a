#include "pipewright/loop_torch/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

/// Limits the memory, because a training may last for weeks.
constexpr std::size_t most_kept_steps = 256;

}  // namespace

Recorder::Recorder(const plan::Program& program, const exec::JobGrid& grid)
    : ranks_(program.ranks.size()) {
  int places = 0;
  for (int own = 0; own < grid.size(); ++own) {
    const exec::JobRank rank = grid.rank(own);
    const int place = rank.replica * static_cast<int>(ranks_) + rank.rank;
    place_.push_back(rank.shard == 0 ? place : -1);
    places = std::max(places, place + 1);
  }
  current_.resize(static_cast<std::size_t>(places));
}

exec::Observer Recorder::observer() {
  return [this](const exec::InstructionRecord& record) {
    const int place = place_[static_cast<std::size_t>(record.rank)];
    if (place < 0)
      return;
    auto& own = current_[static_cast<std::size_t>(place)];
    own.push_back(record);
    own.back().rank = place % static_cast<int>(ranks_);
  };
}

void Recorder::end_step(const exec::StepResult& step) {
  if (steps_.size() == most_kept_steps)
    steps_.erase(steps_.begin());
  const auto others = current_.begin() + static_cast<std::ptrdiff_t>(ranks_);
  steps_.push_back(
      {step.begin, step.duration, {current_.begin(), others}, {others, current_.end()}});
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
    // Two actions that take turns overlap, so their samples need sorting.
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
