#include "pipewright/sim/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "held_items.hpp"
#include "pipewright/plan/program/program_counts.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;

/// Returns true if `event` ends after `other`. If both end at once, the higher number ends later.
bool ends_after(const Times& times, int event, int other) {
  const double end = times[event].lets_go(), others_end = times[other].lets_go();
  return end != others_end ? end > others_end : event > other;
}

}  // namespace

plan::Bytes MemoryCurves::highest_peak() const {
  Bytes highest;
  for (const MemoryPeak& peak : peaks)
    highest = std::max(highest, peak.held);
  return highest;
}

MemoryModel::MemoryModel(const Structure& structure, Holding holding)
    : structure_(structure), holding_(holding) {
  const plan::Program& program = structure.program();
  // Without a flush every microbatch has its own sum.
  if (program.asynchronous || plan::is_forward_only(program)) {
    holding_.gradient_groups = 0;
    holding_.captures = false;
  }
  const std::size_t ranks = program.ranks.size();
  for (std::size_t rank = 0; rank < ranks; ++rank)
    stages_of_rank_.push_back(program.placement.stages_on(static_cast<int>(rank)));
  weight_versions_ =
      program.asynchronous ? plan::weight_versions(program) : std::vector<int>(ranks, 1);
  if (holding_.captures)
    note_captured();
  make_streams();

  std::size_t points = 0, most_own = 0, most_other = 0;
  for (const auto& streams : streams_) {
    curves_.begins.push_back(points);
    std::size_t changes = 0;
    for (const Stream& stream : streams)
      changes += most_points(stream);
    points += 1 + changes;  // the first is the standing memory
    const std::size_t own = most_points(streams.front());
    most_own = std::max(most_own, own);
    most_other = std::max(most_other, changes - own);
  }
  // One more, because a change of 0 bytes is written and then overwritten.
  own_changes_.resize(most_own + 1);
  for (auto* changes : {&other_changes_, &next_changes_, &merged_changes_})
    changes->resize(most_other + 1);
  curves_.points.resize(points);
  curves_.counts.resize(ranks);
  curves_.peaks.resize(ranks);
}

void MemoryModel::note_captured() {
  const plan::Program& program = structure_.program();
  for (const int slots : plan::slot_counts(program))
    captured_.push_back({.copies = slots});
  for (const auto& rank : program.ranks)
    for (const plan::Instruction& i : rank) {
      if (i.kind == plan::InstructionKind::WeightGradient)
        captured_[static_cast<std::size_t>(i.stage)].splits = true;
      if (i.kind == plan::InstructionKind::Recompute)
        captured_[static_cast<std::size_t>(i.stage)].reruns = true;
    }
}

void MemoryModel::price(const StepCosts& costs) {
  lengths_.assign(costs.microbatch_lengths.begin(), costs.microbatch_lengths.end());
  std::sort(lengths_.begin(), lengths_.end());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
  length_of_.clear();
  for (const double length : costs.microbatch_lengths)
    length_of_.push_back(static_cast<int>(
        std::lower_bound(lengths_.begin(), lengths_.end(), length) - lengths_.begin()));
  if (lengths_.empty())
    lengths_.push_back(1);

  amounts_.clear();
  for (const double length : lengths_)
    for (const AmountClass& c : classes_) {
      std::int64_t sum = c.aside * bytes_of(Amount::GradientsAside, costs, c.stage, length);
      // An amount in both sets would neither be gained nor lost.
      for (std::uint64_t left = c.gained ^ c.lost; left != 0; left &= left - 1) {
        const auto amount = static_cast<Amount>(std::countr_zero(left));
        const std::int64_t bytes = bytes_of(amount, costs, c.stage, length);
        sum += (c.gained & bit_of(amount)) != 0 ? bytes : -bytes;
      }
      amounts_.push_back(sum);
    }
}

std::int64_t MemoryModel::amount(int amount_class, int event) const {
  auto at = static_cast<std::size_t>(amount_class);
  const int microbatch = structure_.events()[event].instruction->microbatch;
  if (!length_of_.empty() && microbatch >= 0) {
    at += classes_.size() *
          static_cast<std::size_t>(length_of_[static_cast<std::size_t>(microbatch)]);
  }
  return amounts_[at];
}

std::size_t MemoryModel::most_points(const Stream& stream) const {
  std::size_t points = 0;
  for (std::size_t at = stream.begin; at < stream.end; ++at)
    points += entries_[at].at_release < -1 ? 3 : 2;
  return points;
}

/// Writes the changes of a stream starting at `next`, and returns their end.
MemoryPoint* MemoryModel::expand(const Stream& stream, const StepCosts& costs, const Times& times,
                                 MemoryPoint* next) const {
  const auto add = [&](double when, std::int64_t bytes) {
    *next = {when, bytes};
    next += bytes != 0 ? 1 : 0;
  };
  for (std::size_t at = stream.begin; at < stream.end; ++at) {
    const Entry& entry = entries_[at];
    const EventTimes& time = times[entry.event];
    if (entry.at_start >= 0)
      add(time.start, amount(entry.at_start, entry.event));
    if (entry.at_release >= 0) {
      add(time.lets_go(), amount(entry.at_release, entry.event));
    } else if (entry.at_release < -1) {
      const Ending ending = ending_of(entry, times);
      if (ending.early != 0)
        add(time_of({entry.event, When::Part}, structure_, costs, times), ending.early);
      add(time.lets_go(), ending.at_end);
    }
  }
  return next;
}

/// Returns the changes at the end of an event that are not a single class.
MemoryModel::Ending MemoryModel::ending_of(const Entry& entry, const Times& times) const {
  const EndList& list = end_lists_[static_cast<std::size_t>(-2 - entry.at_release)];
  Ending ending;
  for (std::size_t at = list.begin; at < list.end; ++at) {
    const EndChange& change = end_changes_[at];
    const std::int64_t bytes = amount(change.amount_class, entry.event);
    if (bytes != 0 && (change.later_than < 0 || ends_after(times, entry.event, change.later_than)))
      (change.is_early ? ending.early : ending.at_end) += bytes;
  }
  return ending;
}

/// Returns all changes on this rank that the compute and queues of other ranks time.
std::span<const MemoryPoint> MemoryModel::merge_neighbors(int rank, const StepCosts& costs,
                                                          const Times& times) {
  const auto& streams = streams_[static_cast<std::size_t>(rank)];
  std::size_t count = 0;
  for (std::size_t at = 1; at < streams.size(); ++at) {
    MemoryPoint* const begin = next_changes_.data();
    MemoryPoint* const end = expand(streams[at], costs, times, begin);
    if (at == 1) {
      std::swap(other_changes_, next_changes_);
      count = static_cast<std::size_t>(end - begin);
      continue;
    }
    const MemoryPoint* const before = other_changes_.data();
    MemoryPoint* const merged =
        std::merge(before, before + count, begin, end, merged_changes_.data(),
                   [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; });
    count = static_cast<std::size_t>(merged - merged_changes_.data());
    std::swap(other_changes_, merged_changes_);
  }
  return {other_changes_.data(), count};
}

/// Adds up the rank's changes. All changes at one time are one point: memory that ends then is
/// released before any begins, so that there is no peak between the two.
void MemoryModel::draw(int rank, Bytes standing, std::span<const MemoryPoint> own,
                       std::span<const MemoryPoint> others) {
  const auto at = static_cast<std::size_t>(rank);
  MemoryPoint* const begin = curves_.points.data() + curves_.begins[at];
  MemoryPoint* last = begin;
  *last = {0, standing.value};
  MemoryPeak peak{0, standing};
  std::int64_t held = standing.value;
  const auto settle = [&] {
    if (last->held > peak.held.value)
      peak = {last->time, {last->held}};
  };
  const auto take = [&](const MemoryPoint& change) {
    held += change.held;
    if (last == begin || change.time != last->time) {
      assert(change.time >= last->time);
      settle();
      ++last;
    }
    *last = {change.time, held};
  };
  auto next = own.begin();
  auto other = others.begin();
  while (next != own.end() && other != others.end())
    take(other->time < next->time ? *other++ : *next++);
  while (next != own.end())
    take(*next++);
  while (other != others.end())
    take(*other++);
  settle();
  curves_.counts[at] = static_cast<std::size_t>(last - begin) + 1;
  curves_.peaks[at] = peak;
}

/// Returns the slots' permanent memory. A slot keeps copies of its received data, and the most that
/// its parts hold at once, with the gradients of all parameters.
Bytes MemoryModel::set_aside(const StepCosts& costs, int rank) const {
  Bytes sum;
  for (const int stage : stages_of_rank_[static_cast<std::size_t>(rank)])
    if (!captured_.empty()) {
      const Captured& captured = captured_[static_cast<std::size_t>(stage)];
      sum += slot_bytes(costs, stage, captured.splits, captured.reruns) * captured.copies;
    }
  return sum;
}

Bytes MemoryModel::workspaces(const StepCosts& costs, int rank) const {
  Bytes most;
  for (const int stage : stages_of_rank_[static_cast<std::size_t>(rank)])
    most = std::max(most, costs.stages[static_cast<std::size_t>(stage)].workspace);
  return costs.workspaces + most;
}

Bytes MemoryModel::standing(const StepCosts& costs, int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  Bytes sum = workspaces(costs, rank) + set_aside(costs, rank);
  for (const int stage : stages_of_rank_[at]) {
    const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
    sum += plan::standing(cost) + cost.parameters * (weight_versions_[at] - 1) +
           standing_gradients(cost) * more_groups();
  }
  return sum;
}

const MemoryCurves& MemoryModel::curves(const StepCosts& costs, const Times& times) {
  price(costs);
  for (int rank = 0; rank < static_cast<int>(streams_.size()); ++rank) {
    const MemoryPoint* const own = own_changes_.data();
    const MemoryPoint* const end =
        expand(streams_[static_cast<std::size_t>(rank)].front(), costs, times, own_changes_.data());
    draw(rank, standing(costs, rank), {own, end}, merge_neighbors(rank, costs, times));
  }
  return curves_;
}

std::vector<Holder> MemoryModel::holders(const StepCosts& costs, const Times& times, int rank,
                                         double time) const {
  const auto at = static_cast<std::size_t>(rank);
  std::vector<Holder> holders{
      {"parameters", {}}, {"gradients", {}}, {"optimizer state", {}}, {"older weights", {}}};
  for (const int stage : stages_of_rank_[at]) {
    const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
    holders[0].bytes += standing_parameters(cost);
    holders[1].bytes += standing_gradients(cost) * (1 + more_groups());
    holders[2].bytes += cost.optimizer_state;
    holders[3].bytes += cost.parameters * (weight_versions_[at] - 1);
  }

  holders.push_back({"workspaces of the device", workspaces(costs, rank)});
  holders.push_back({"set aside for graphs", set_aside(costs, rank)});

  const plan::Program& program = structure_.program();
  const auto when = [&](const EventPoint& point) {
    return time_of(point, structure_, costs, times);
  };
  const HeldItems items(structure_, holding_);
  const auto add = [&](const HeldItem& item, double length) {
    const bool outlasts = item.outlasts >= 0 && times[item.outlasts].lets_go() > time;
    if (when(item.from) > time || (when(item.until) <= time && !outlasts))
      return;
    const Bytes bytes{bytes_of(item.amount, costs, item.stage, length)};
    std::string name =
        fmt::format("{} {}", item.name, to_string(*structure_.events()[item.named_by].instruction));
    if (holders.back().name == name)
      holders.back().bytes += bytes;
    else
      holders.push_back({std::move(name), bytes});
  };
  for (const int stage : stages_of_rank_[at])
    for (int m = 0; m < program.microbatches; ++m) {
      if (program.placement.rank_of(stage, m) != rank)
        continue;
      const double length = costs.microbatch_lengths.empty()
                                ? 1
                                : costs.microbatch_lengths[static_cast<std::size_t>(m)];
      items.for_each(stage, m, [&](const HeldItem& item) { add(item, length); });
    }
  items.for_each_gathered([&](const HeldItem& item) {
    if (structure_.events()[item.named_by].rank == rank)
      add(item, 1);
  });
  std::erase_if(holders, [](const Holder& holder) { return holder.bytes == Bytes{}; });
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  return holders;
}

std::vector<plan::MemorySample> samples_of(const MemoryCurves& curves) {
  std::vector<plan::MemorySample> samples;
  for (std::size_t rank = 0; rank < curves.counts.size(); ++rank)
    for (const MemoryPoint& point : curves.of(static_cast<int>(rank)))
      samples.push_back({static_cast<int>(rank), {point.time}, {point.held}});
  return samples;
}

}  // namespace pipewright::sim
