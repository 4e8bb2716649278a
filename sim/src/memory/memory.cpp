#include "pipewright/sim/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

#include "held_items.hpp"
#include "pipewright/plan/program/program_counts.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;

/// A gain or a loss at one moment, on the rank of `owner`.
struct Change {
  int event;
  int owner;  // rank
  When when;
  bool gains;
  Amount amount;
  int stage;            // of the amount
  int later_than = -1;  // only if that event ends before
};

std::uint32_t bit_of(Amount amount) { return std::uint32_t{1} << static_cast<unsigned>(amount); }

/// Of two that end at once, the one that is numbered higher.
bool ends_after(const Times& times, int event, int other) {
  const double end = times[event].lets_go(), others_end = times[other].lets_go();
  return end != others_end ? end > others_end : event > other;
}

/// Every change of every item, by event.
class Changes {
 public:
  Changes(const Structure& structure, Holding holding) : structure_(structure) {
    const HeldItems items(structure, holding);
    const plan::Program& program = structure.program();
    for (int stage = 0; stage < plan::stage_count(program); ++stage)
      for (int m = 0; m < program.microbatches; ++m) {
        const int rank = program.placement.rank_of(stage, m);
        items.for_each(stage, m, [&](const HeldItem& item) { add(item, rank); });
      }
    sort_by_event();
  }

  const std::vector<Change>& sorted() const { return changes_; }

 private:
  void add(const HeldItem& item, int rank) {
    changes_.push_back({item.from.event, rank, item.from.when, true, item.amount, item.stage});
    changes_.push_back(
        {item.until.event, rank, item.until.when, false, item.amount, item.stage, item.outlasts});
    if (item.outlasts >= 0)
      changes_.push_back(
          {item.outlasts, rank, When::End, false, item.amount, item.stage, item.until.event});
  }

  void sort_by_event() {
    std::vector<std::size_t> next(static_cast<std::size_t>(structure_.size()) + 1);
    for (const Change& change : changes_)
      ++next[static_cast<std::size_t>(change.event) + 1];
    for (std::size_t event = 1; event < next.size(); ++event)
      next[event] += next[event - 1];
    std::vector<Change> sorted(changes_.size());
    for (const Change& change : changes_)
      sorted[next[static_cast<std::size_t>(change.event)]++] = change;
    changes_ = std::move(sorted);
  }

  const Structure& structure_;
  std::vector<Change> changes_;
};

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
  // Without a flush every microbatch is a sum of its own.
  if (program.asynchronous || plan::is_forward_only(program))
    holding_.gradient_groups = 0;
  const std::size_t ranks = program.ranks.size();
  for (std::size_t rank = 0; rank < ranks; ++rank)
    stages_of_rank_.push_back(program.placement.stages_on(static_cast<int>(rank)));
  weight_versions_ =
      program.asynchronous ? plan::weight_versions(program) : std::vector<int>(ranks, 1);
  make_streams();

  std::size_t points = 0, most_own = 0, most_other = 0;
  for (const auto& streams : streams_) {
    curves_.begins.push_back(points);
    std::size_t changes = 0;
    for (const Stream& stream : streams)
      changes += most_points(stream);
    points += 1 + changes;  // the first is what stands
    const std::size_t own = most_points(streams.front());
    most_own = std::max(most_own, own);
    most_other = std::max(most_other, changes - own);
  }
  // One more: a change of nothing is written and then written over.
  own_changes_.resize(most_own + 1);
  for (auto* changes : {&other_changes_, &next_changes_, &merged_changes_})
    changes->resize(most_other + 1);
  curves_.points.resize(points);
  curves_.counts.resize(ranks);
  curves_.peaks.resize(ranks);
}

/// The compute of a rank is in order of time, a queue is, and so is what another rank's compute
/// ends on this one. Each is a stream; entries are by event, which is the order of the lists.
void MemoryModel::make_streams() {
  const auto& events = structure_.events();
  const int ranks = static_cast<int>(structure_.program().ranks.size());
  const auto transfers = [&](int event) {
    const plan::InstructionKind kind = events[event].instruction->kind;
    return plan::is_send(kind) || plan::is_receive(kind);
  };
  struct Set {
    std::uint32_t gained = 0, lost = 0;
    int aside = 0;
    auto operator<=>(const Set&) const = default;
  };
  std::vector<std::vector<int>> classes_of;  // by set of amounts: by stage, -1 where unused
  std::map<Set, std::size_t> sets;
  const auto class_of = [&](int stage, const Set& amounts) {
    if (amounts == Set{})
      return -1;
    const auto [set, is_new] = sets.try_emplace(amounts, classes_of.size());
    if (is_new)
      classes_of.emplace_back(static_cast<std::size_t>(plan::stage_count(structure_.program())),
                              -1);
    int& known = classes_of[set->second][static_cast<std::size_t>(stage)];
    if (known < 0) {
      known = static_cast<int>(classes_.size());
      classes_.push_back({stage, amounts.gained, amounts.lost, amounts.aside});
    }
    return known;
  };

  using At = std::vector<Change>::const_iterator;
  std::map<int, Set> at_end;  // by stage
  const auto entry_of = [&](int event, int owner, At begin, At end) {
    Set at_start;
    at_end.clear();
    const std::size_t parts_begin = part_.size();
    for (At change = begin; change != end; ++change) {
      if (change->owner != owner)
        continue;
      if (change->when == When::Part || change->later_than >= 0) {
        part_.push_back({class_of(change->stage, {.lost = bit_of(change->amount)}),
                         change->when == When::Part, change->later_than});
        continue;
      }
      // What begins with an event is its own stage's.
      Set& set = change->when == When::Start ? at_start : at_end[change->stage];
      if (change->amount == Amount::GradientsAside)
        set.aside += change->gains ? 1 : -1;
      else
        (change->gains ? set.gained : set.lost) |= bit_of(change->amount);
    }
    Entry entry{event, class_of(events[event].instruction->stage, at_start), -1};
    if (part_.size() == parts_begin && at_end.size() <= 1) {
      for (const auto& [stage, set] : at_end)
        entry.at_release = class_of(stage, set);
      return entry;
    }
    for (const auto& [stage, set] : at_end)
      if (const int amount_class = class_of(stage, set); amount_class >= 0)
        part_.push_back({amount_class});
    entry.at_release = -2 - static_cast<int>(parts_.size());
    parts_.push_back({parts_begin, part_.size()});
    return entry;
  };

  // By owner: the entries of each stream. Compute comes first, then the queues (numbered behind
  // the ranks), then the compute of others.
  std::vector<std::map<int, std::vector<Entry>>> by_source(static_cast<std::size_t>(ranks));
  const Changes changes(structure_, holding_);
  for (auto at = changes.sorted().begin(); at != changes.sorted().end();) {
    const int event = at->event;
    const auto next = std::find_if(at, changes.sorted().end(),
                                   [&](const Change& change) { return change.event != event; });
    for (auto first = at; first != next; ++first) {
      const int owner = first->owner;
      if (std::any_of(at, first, [&](const Change& c) { return c.owner == owner; }))
        continue;
      const bool is_own = events[event].rank == owner;
      const int source = !is_own || transfers(event) ? 1 + events[event].place : 0;
      by_source[static_cast<std::size_t>(owner)][source].push_back(
          entry_of(event, owner, first, next));
    }
    at = next;
  }

  streams_.resize(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < by_source.size(); ++rank) {
    if (by_source[rank].empty() || by_source[rank].begin()->first != 0)
      streams_[rank].push_back({entries_.size(), entries_.size()});  // a rank without compute
    for (const auto& [source, entries] : by_source[rank]) {
      const std::size_t begin = entries_.size();
      entries_.insert(entries_.end(), entries.begin(), entries.end());
      streams_[rank].push_back({begin, entries_.size()});
    }
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
      // The same amount is not both: it would neither be gained nor lost.
      for (std::uint32_t left = c.gained ^ c.lost; left != 0; left &= left - 1) {
        const auto amount = static_cast<Amount>(std::countr_zero(left));
        const std::int64_t bytes = bytes_of(amount, costs, c.stage, length);
        sum += (c.gained & bit_of(amount)) != 0 ? bytes : -bytes;
      }
      amounts_.push_back(sum);
    }
}

std::int64_t MemoryModel::amount(int amount_class, int event) const {
  auto at = static_cast<std::size_t>(amount_class);
  if (!length_of_.empty()) {
    const int microbatch = structure_.events()[event].instruction->microbatch;
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

/// Writes the changes of a stream from `next` on; where they end.
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

/// What the end of an event changes that is not one class.
MemoryModel::Ending MemoryModel::ending_of(const Entry& entry, const Times& times) const {
  const Parts& parts = parts_[static_cast<std::size_t>(-2 - entry.at_release)];
  Ending ending;
  for (std::size_t at = parts.begin; at < parts.end; ++at) {
    const Part& part = part_[at];
    const std::int64_t bytes = amount(part.amount_class, entry.event);
    if (bytes != 0 && (part.later_than < 0 || ends_after(times, entry.event, part.later_than)))
      (part.is_early ? ending.early : ending.at_end) += bytes;
  }
  return ending;
}

/// All that the compute and queues of others time on this rank.
std::span<const MemoryPoint> MemoryModel::merge_neighbours(int rank, const StepCosts& costs,
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

/// Adds up the rank's changes. All that happens at one instant is one point: what ends then is let
/// go of before anything begins, so that nothing between the two is a peak.
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

Bytes MemoryModel::standing(const StepCosts& costs, int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  Bytes sum;
  for (const int stage : stages_of_rank_[at]) {
    const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
    sum += plan::standing(cost) + cost.parameters * (weight_versions_[at] - 1) +
           cost.gradients * more_groups();
  }
  return sum;
}

const MemoryCurves& MemoryModel::curves(const StepCosts& costs, const Times& times) {
  price(costs);
  for (int rank = 0; rank < static_cast<int>(streams_.size()); ++rank) {
    const MemoryPoint* const own = own_changes_.data();
    const MemoryPoint* const end =
        expand(streams_[static_cast<std::size_t>(rank)].front(), costs, times, own_changes_.data());
    draw(rank, standing(costs, rank), {own, end}, merge_neighbours(rank, costs, times));
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
    holders[0].bytes += cost.parameters;
    holders[1].bytes += cost.gradients * (1 + more_groups());
    holders[2].bytes += cost.optimizer_state;
    holders[3].bytes += cost.parameters * (weight_versions_[at] - 1);
  }

  const plan::Program& program = structure_.program();
  const auto moment = [&](const Moment& m) { return time_of(m, structure_, costs, times); };
  const HeldItems items(structure_, holding_);
  for (const int stage : stages_of_rank_[at])
    for (int m = 0; m < program.microbatches; ++m) {
      if (program.placement.rank_of(stage, m) != rank)
        continue;
      const double length = costs.microbatch_lengths.empty()
                                ? 1
                                : costs.microbatch_lengths[static_cast<std::size_t>(m)];
      items.for_each(stage, m, [&](const HeldItem& item) {
        const bool outlasts = item.outlasts >= 0 && times[item.outlasts].lets_go() > time;
        if (moment(item.from) > time || (moment(item.until) <= time && !outlasts))
          return;
        const Bytes bytes{bytes_of(item.amount, costs, stage, length)};
        std::string name = fmt::format("{} {}", item.name,
                                       to_string(*structure_.events()[item.named_by].instruction));
        if (holders.back().name == name)
          holders.back().bytes += bytes;
        else
          holders.push_back({std::move(name), bytes});
      });
    }
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
