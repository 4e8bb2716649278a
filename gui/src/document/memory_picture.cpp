#include "pipewright/gui/document/memory_picture.hpp"

#include <algorithm>

#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::gui {

MemoryPicture::MemoryPicture(const Workspace& workspace) : table_(workspace.front()) {
  if (!table_)
    return;
  ranks_ = table_->table().ranks;
  length_ = table_->length();
  if (workspace.answer() != nullptr)
    cap_ = workspace.answer()->cap;
  const Document& document = workspace.document();
  if (workspace.shown() == Workspace::Shown::Plan) {
    const search::Answer& answer = *workspace.answer();
    timed_ = std::make_shared<Timed>(
        Timed{answer.plan.structure, answer.plan.costs, answer.times,
              sim::holding_of(workspace.draft().scenario, answer.plan.program())});
    table_.reset();  // its samples are the owners' sums
  } else if (document.run && document.structure && document.predicted && document.costs) {
    is_measured_ = document.measured.has_value();
    const loop::StoredRun& run = *document.run;
    try {
      timed_ = std::make_shared<Timed>(Timed{
          document.structure, sim::step_costs_of(run.scenario, *document.costs, run.partition),
          sim::times_of(*document.structure, run.predicted),
          sim::holding_of(run.scenario, document.structure->program())});
      length_ = std::max(length_, run.predicted.length.value);
    } catch (const std::exception&) {
      timed_.reset();  // the run's files do not match: the samples are still shown
    }
    if (timed_ && !is_measured_)
      table_.reset();
  }
  if (timed_)
    owners_ = sim::MemoryModel(*timed_->structure, timed_->holding)
                  .by_owner(timed_->costs, timed_->times);
}

std::span<const plan::EventTable::Memory> MemoryPicture::samples(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (!table_ || at + 1 >= table_->table().memory_begins.size())
    return {};
  const auto& begins = table_->table().memory_begins;
  return table_->table().memory.subspan(begins[at], begins[at + 1] - begins[at]);
}

sim::MemoryPeak MemoryPicture::peak(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (at >= owners_.size())
    return measured_peak(rank);
  sim::MemoryPeak peak;
  for (const sim::OwnersPoint& point : owners_[at])
    if (point.sum() > peak.held.value)
      peak = {point.time, {point.sum()}};
  return peak;
}

sim::MemoryPeak MemoryPicture::measured_peak(int rank) const {
  sim::MemoryPeak peak;
  for (const plan::EventTable::Memory& sample : samples(rank))
    if (sample.bytes > peak.held.value)
      peak = {sample.time, {sample.bytes}};
  return peak;
}

std::int64_t MemoryPicture::highest() const {
  std::int64_t highest = 0;
  for (int rank = 0; rank < ranks_; ++rank)
    highest = std::max({highest, peak(rank).held.value, measured_peak(rank).held.value});
  return highest;
}

std::vector<sim::Holder> MemoryPicture::holders(int rank, double time) const {
  if (!timed_)
    return {};
  return sim::MemoryModel(*timed_->structure, timed_->holding)
      .holders(timed_->costs, timed_->times, rank, time);
}

}  // namespace pipewright::gui
