#include <algorithm>
#include <map>

#include "held_items.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {

/// Makes the streams. A rank's compute is in order of time, and so are a queue and the changes on
/// this rank that another rank's compute ends. Each is a stream; entries are ordered by event,
/// which is the order of the lists.
class MemoryModel::StreamMaker {
  /// A gain or a loss at one time, on the rank `owner`.
  struct Change {
    int event;
    int owner;  // rank
    When when;
    bool gains;
    Amount amount;
    int stage;            // of the amount
    int later_than = -1;  // only if that event has ended before
  };

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
      items.for_each_gathered(
          [&](const HeldItem& item) { add(item, structure.events()[item.named_by].rank); });
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

 public:
  explicit StreamMaker(MemoryModel& model)
      : model_(model),
        structure_(model.structure_),
        changes_(structure_, model.holding_),
        by_source_(structure_.program().ranks.size()) {}

  void make() {
    const auto end = changes_.sorted().end();
    for (auto at = changes_.sorted().begin(); at != end;) {
      const auto next =
          std::find_if(at, end, [&](const Change& change) { return change.event != at->event; });
      add_event(at, next);
      at = next;
    }
    lay_out();
  }

 private:
  using At = std::vector<Change>::const_iterator;

  /// Amounts that are gained and lost together: see AmountClass.
  struct AmountSet {
    std::uint64_t gained = 0, lost = 0;
    int aside = 0;
    auto operator<=>(const AmountSet&) const = default;
  };

  /// Adds an entry for each rank on which the event changes something.
  void add_event(At begin, At end) {
    const auto& own = structure_.events()[begin->event];
    const bool is_beside = !plan::is_compute(own.instruction->kind);
    for (auto first = begin; first != end; ++first) {
      const int owner = first->owner;
      if (std::any_of(begin, first, [&](const Change& c) { return c.owner == owner; }))
        continue;
      const int source = own.rank != owner || is_beside ? 1 + own.place : 0;
      by_source_[static_cast<std::size_t>(owner)][source].push_back(entry_of(owner, begin, end));
    }
  }

  Entry entry_of(int owner, At begin, At end) {
    AmountSet at_start;
    at_end_.clear();
    const std::size_t begin_of_own = model_.end_changes_.size();
    for (At change = begin; change != end; ++change) {
      if (change->owner != owner)
        continue;
      const bool is_early = change->when == When::Part;
      if (is_early || change->later_than >= 0)
        model_.end_changes_.push_back({class_of(change->stage, {.lost = bit_of(change->amount)}),
                                       is_early, change->later_than});
      else  // changes at an event's start belong to its own stage
        add(*change, change->when == When::Start ? at_start : at_end_[change->stage]);
    }
    const int stage = structure_.events()[begin->event].instruction->stage;
    return {begin->event, class_of(stage, at_start), release_of(begin_of_own)};
  }

  static void add(const Change& change, AmountSet& set) {
    if (change.amount == Amount::GradientsAside)
      set.aside += change.gains ? 1 : -1;
    else
      (change.gains ? set.gained : set.lost) |= bit_of(change.amount);
  }

  /// Returns the changes at the end of an event: one class if that suffices, otherwise a list that
  /// begins at `begin` with the changes already put there.
  int release_of(std::size_t begin) {
    auto& list = model_.end_changes_;
    if (list.size() == begin && at_end_.size() <= 1)
      return at_end_.empty() ? -1 : class_of(at_end_.begin()->first, at_end_.begin()->second);
    for (const auto& [stage, set] : at_end_)
      if (const int amount_class = class_of(stage, set); amount_class >= 0)
        list.push_back({amount_class});
    model_.end_lists_.push_back({begin, list.size()});
    return -1 - static_cast<int>(model_.end_lists_.size());
  }

  /// Returns -1 for no amounts.
  int class_of(int stage, const AmountSet& amounts) {
    if (amounts == AmountSet{})
      return -1;
    auto [known, is_new] = classes_of_.try_emplace(amounts);
    if (is_new)
      known->second.assign(static_cast<std::size_t>(plan::stage_count(structure_.program())), -1);
    int& number = known->second[static_cast<std::size_t>(stage)];
    if (number < 0) {
      number = static_cast<int>(model_.classes_.size());
      model_.classes_.push_back({stage, amounts.gained, amounts.lost, amounts.aside});
    }
    return number;
  }

  void lay_out() {
    auto& entries = model_.entries_;
    model_.streams_.resize(by_source_.size());
    for (std::size_t rank = 0; rank < by_source_.size(); ++rank) {
      auto& streams = model_.streams_[rank];
      if (by_source_[rank].empty() || by_source_[rank].begin()->first != 0)
        streams.push_back({entries.size(), entries.size()});  // a rank without compute
      for (const auto& [source, own] : by_source_[rank]) {
        const std::size_t begin = entries.size();
        entries.insert(entries.end(), own.begin(), own.end());
        streams.push_back({begin, entries.size()});
      }
    }
  }

  MemoryModel& model_;
  const Structure& structure_;
  const Changes changes_;
  std::map<AmountSet, std::vector<int>> classes_of_;  // by stage; -1 where unused
  std::map<int, AmountSet> at_end_;                   // of one entry, by stage
  /// By owner: the entries of each stream. The rank's own compute comes first, then the queues
  /// (numbered after the ranks), then the compute of others.
  std::vector<std::map<int, std::vector<Entry>>> by_source_;
};

void MemoryModel::make_streams() { StreamMaker(*this).make(); }

}  // namespace pipewright::sim
