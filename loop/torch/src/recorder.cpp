#include "pipewright/loop_torch/recorder.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {

Recorder::Recorder(const plan::Program& program, int replicas)
    : replicas_(replicas), current_(program.ranks.size()) {
  for (std::size_t rank = 0; rank < current_.size(); ++rank)
    current_[rank].reserve(program.ranks[rank].size());
}

exec::Observer Recorder::observer() {
  return [this](const exec::InstructionRecord& record) {
    if (record.rank % replicas_ != 0)
      return;
    auto& records = current_[static_cast<std::size_t>(record.rank / replicas_)];
    records.push_back(record);
    records.back().rank /= replicas_;
  };
}

void Recorder::end_step(plan::Seconds duration) {
  steps_.push_back({duration, current_});
  for (auto& records : current_)
    records.clear();
}

plan::Timeline timeline_of(const StepRecord& step, const std::string& name) {
  plan::Timeline timeline{.name = name,
                          .ranks = static_cast<int>(step.ranks.size()),
                          .length = step.duration,
                          .spans = {},
                          .memory = {}};
  for (const auto& records : step.ranks)
    for (const exec::InstructionRecord& record : records) {
      const auto row = plan::row_of(record.instruction.kind);
      timeline.spans.push_back(
          {record.rank, row, to_string(record.instruction), record.start, record.end});
      if (row != plan::Row::Compute)
        continue;
      timeline.memory.push_back({record.rank, record.start, record.peak});
      timeline.memory.push_back({record.rank, record.end, record.held_after});
    }
  return timeline;
}

plan::StepFigures typical_figures(const std::vector<StepRecord>& steps, std::size_t skip) {
  const std::size_t ranks = steps.front().ranks.size();
  std::vector<double> iteration;
  std::vector<std::vector<double>> busy(ranks), bubble(ranks);
  plan::StepFigures typical{.iteration = {}, .busy = {}, .bubble = {}, .peak = {}};
  typical.peak.resize(ranks);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto figures = plan::figures_of(timeline_of(steps[s], "step"));
    for (std::size_t r = 0; r < ranks; ++r) {
      typical.peak[r] = std::max(typical.peak[r], figures.peak[r]);
      if (s < skip)
        continue;
      busy[r].push_back(figures.busy[r].value);
      bubble[r].push_back(figures.bubble[r].value);
    }
    if (s >= skip)
      iteration.push_back(figures.iteration.value);
  }
  typical.iteration = {plan::median(iteration)};
  for (std::size_t r = 0; r < ranks; ++r) {
    typical.busy.push_back({plan::median(busy[r])});
    typical.bubble.push_back({plan::median(bubble[r])});
  }
  return typical;
}

const StepRecord& typical_step(const std::vector<StepRecord>& steps, std::size_t skip) {
  const double middle = typical_figures(steps, skip).iteration.value;
  return *std::min_element(steps.begin() + static_cast<std::ptrdiff_t>(skip), steps.end(),
                           [&](const StepRecord& a, const StepRecord& b) {
                             return std::abs(a.duration.value - middle) <
                                    std::abs(b.duration.value - middle);
                           });
}

}  // namespace pipewright::loop
