#include "hang/followed_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

/// Identifies a send or receive.
using End = std::pair<bool, int>;  // whether it sends, and the other rank

struct Expected {
  End end;
  plan::Instruction instruction;
};
struct Issued {
  End end;
  int operation = 0;
  int launch = 0;
  int group = 0;
  std::int64_t sequence = 0;
  bool is_behind_collective = false;
};

/// A deviation from the schedule: one operation is left out, or one is swapped with the next.
struct Edit {
  std::size_t left_out = static_cast<std::size_t>(-1);
  std::size_t swapped = static_cast<std::size_t>(-2);
};
constexpr std::size_t widest_swap = 24;  // operations that may be reordered

std::vector<Expected> expected_of(const plan::Program& program, int rank) {
  std::vector<Expected> list;
  for (const plan::Instruction& own : program.ranks[static_cast<std::size_t>(rank)])
    if (is_send(own.kind) || is_receive(own.kind))
      list.push_back({{is_send(own.kind), peer_rank(program, own)}, own});
  return list;
}

/// Compares one rank's two lists. The expected list repeats every step; positions in it keep
/// counting.
class Follower {
 public:
  Follower(std::vector<Expected> expected, std::vector<Issued> issued, const FlightRecord& record)
      : expected_(std::move(expected)), issued_(std::move(issued)), record_(record) {
    own_.instructions.resize(record.operations.size());
  }

  FollowedSchedule run() && {
    if (expected_.empty() || issued_.empty())
      return std::move(own_);
    const std::size_t offset = best_offset();
    const std::size_t matched = walk(0, offset);
    own_.followed = matched;
    name_operations(offset, matched);
    if (matched == issued_.size()) {
      own_.next = at(offset + matched).instruction;
      own_.is_between_steps = (offset + matched) % expected_.size() == 0;
    } else {
      own_.divergence = divergence_at(matched, offset + matched);
      name_the_rest(matched, offset + matched);
    }
    return std::move(own_);
  }

 private:
  struct Guess {
    HangKind kind = HangKind::Order;
    std::size_t explained = 0;  // number of operations from the divergence on
    bool ends_a_step = false;
    std::size_t position = 0;  // of the missing operation
    bool better_than(const Guess& other) const {
      return std::tie(explained, ends_a_step) > std::tie(other.explained, other.ends_a_step);
    }
  };

  const Expected& at(std::size_t position) const { return expected_[position % expected_.size()]; }
  const Expected& edited(std::size_t position, const Edit& edit) const {
    if (position == edit.swapped || position == edit.swapped + 1)
      return at(position == edit.swapped ? position + 1 : position - 1);
    return at(position >= edit.left_out ? position + 1 : position);
  }
  std::size_t launch_size(std::size_t i) const {
    std::size_t size = 1;
    while (i + size < issued_.size() && issued_[i + size].launch == issued_[i].launch)
      ++size;
    return size;
  }
  /// Returns true if the next `count` operations are the expected ones in any order.
  bool are_alike(std::size_t i, std::size_t position, std::size_t count, const Edit& edit) const {
    std::multiset<End> ends;
    for (std::size_t k = 0; k < count; ++k)
      ends.insert(issued_[i + k].end);
    for (std::size_t k = 0; k < count; ++k) {
      const auto found = ends.find(edited(position + k, edit).end);
      if (found == ends.end())
        return false;
      ends.erase(found);
    }
    return true;
  }
  /// Returns how many operations from here on are as expected. Operations of one launch have no
  /// order.
  std::size_t walk(std::size_t i, std::size_t position, const Edit& edit = {}) const {
    const std::size_t begin = i;
    while (i < issued_.size()) {
      const std::size_t count = launch_size(i);
      if (!are_alike(i, position, count, edit))
        break;
      i += count;
      position += count;
    }
    return i - begin;
  }

  /// Finds where in a step the record begins: the offset at which the schedule, with one deviation,
  /// explains most of the record. Breaks ties in favor of offsets whose collectives fall between
  /// steps, then of the offset given by the rank's own count (p2p_seq_id).
  std::size_t best_offset() const {
    std::size_t best = record_.is_whole ? 0 : counted_offset();
    auto fit = fit_at(best);
    if (record_.is_whole && fit.first > 0)
      return best;
    for (std::size_t offset = 0; offset < expected_.size(); ++offset)
      if (const auto other = fit_at(offset); other > fit) {
        fit = other;
        best = offset;
      }
    return best;
  }
  /// Returns how many operations are explained, and minus the number of collectives that do not
  /// fall between steps.
  std::pair<std::size_t, int> fit_at(std::size_t offset) const {
    std::size_t explained = walk(0, offset);
    int within = 0;
    for (std::size_t i = 1; i < explained; ++i)
      within += issued_[i].is_behind_collective && (offset + i) % expected_.size() != 0 ? 1 : 0;
    if (explained < issued_.size() && (explained > 0 || (record_.is_whole && offset == 0)))
      explained += best_guess(explained, offset + explained).explained;
    return {explained, -within};
  }
  /// Derives the offset from the number of launches per step, and from each group's count of
  /// launches before the second launch of the record. The first launch may be incomplete.
  std::size_t counted_offset() const {
    const std::size_t length = expected_.size(), begin = launch_size(0);
    std::map<int, std::int64_t> before;  // by group
    for (std::size_t i = 0; i < issued_.size(); ++i)
      if (i < begin)
        before[issued_[i].group] = issued_[i].sequence;
      else
        before.try_emplace(issued_[i].group, issued_[i].sequence - 1);
    std::int64_t launches = 0;
    for (const auto& [group, count] : before)
      launches += std::max<std::int64_t>(count, 0);
    std::vector<std::size_t> ends;  // ends, in operations, of the launches of a step that begins
                                    // there
    for (std::size_t i = begin; i < issued_.size() && i < begin + length; i += launch_size(i))
      ends.push_back(i - begin + launch_size(i));
    if (ends.empty() || ends.back() != length)
      return 0;
    const std::size_t done = static_cast<std::size_t>(launches) % ends.size();
    const std::size_t to_border = ends[ends.size() - done - 1];
    return (2 * length - to_border % length - begin % length) % length;
  }

  void name_operations(std::size_t offset, std::size_t count) {
    for (std::size_t i = 0; i < count;) {
      const std::size_t size = launch_size(i);
      std::vector<char> taken(size);
      for (std::size_t k = 0; k < size; ++k)
        for (std::size_t e = 0; e < size; ++e)
          if (taken[e] == 0 && at(offset + i + e).end == issued_[i + k].end) {
            taken[e] = 1;
            own_.instructions[static_cast<std::size_t>(issued_[i + k].operation)] =
                at(offset + i + e).instruction;
            break;
          }
      i += size;
    }
  }
  /// Names reordered operations, too.
  void name_the_rest(std::size_t i, std::size_t position) {
    std::vector<char> taken(widest_swap);
    for (std::size_t k = 0; k < widest_swap && i + k < issued_.size(); ++k)
      for (std::size_t e = 0; e < widest_swap; ++e)
        if (taken[e] == 0 && at(position + e).end == issued_[i + k].end) {
          taken[e] = 1;
          own_.instructions[static_cast<std::size_t>(issued_[i + k].operation)] =
              at(position + e).instruction;
          break;
        }
  }

  /// Returns true if the rank finished a step and continued with a collective.
  bool ends_a_step(std::size_t position) const {
    return position % expected_.size() == 0 &&
           record_.operations.back().kind == FlightOperation::Kind::Collective;
  }

  /// Returns the deviation that explains most of the operations that the rank issued from there on;
  /// of equals, the smallest deviation.
  Guess best_guess(std::size_t i, std::size_t position) const {
    const std::size_t end = position + issued_.size() - i;
    Guess best{.position = position};
    const auto try_guess = [&](const Guess& guess) {
      if (guess.better_than(best))
        best = guess;
    };
    const std::size_t nearest = launch_size(i);
    const std::size_t left_of_step = expected_.size() - position % expected_.size();
    for (std::size_t k = 0; k < nearest && k + 1 < left_of_step; ++k)
      try_guess({HangKind::Order, walk(i, position, {.swapped = position + k}), ends_a_step(end),
                 position});
    for (std::size_t k = 0; k <= nearest; ++k)
      try_guess({is_send(at(position + k).instruction.kind) ? HangKind::MissingSend
                                                            : HangKind::MissingReceive,
                 walk(i, position, {.left_out = position + k}), ends_a_step(end + 1),
                 position + k});
    for (std::size_t count = 2; count <= std::min({widest_swap, left_of_step, issued_.size() - i});
         ++count)
      if (are_alike(i, position, count, {})) {
        try_guess({HangKind::Order, count + walk(i + count, position + count), ends_a_step(end),
                   position});
        break;
      }
    try_guess({HangKind::Extra, 1 + walk(i + 1, position), ends_a_step(end - 1), position});
    return best;
  }

  /// Returns the first operation of the launch that is not expected, and the first expected one
  /// that is not in the launch.
  std::pair<std::size_t, std::size_t> first_difference(std::size_t i, std::size_t position) const {
    const std::size_t count = launch_size(i);
    std::multiset<End> issued, expected;
    for (std::size_t k = 0; k < count; ++k) {
      issued.insert(issued_[i + k].end);
      expected.insert(at(position + k).end);
    }
    std::pair<std::size_t, std::size_t> both{i, position};
    for (std::size_t k = count; k-- > 0;) {
      if (issued.count(at(position + k).end) < expected.count(at(position + k).end))
        both.second = position + k;
      if (expected.count(issued_[i + k].end) < issued.count(issued_[i + k].end))
        both.first = i + k;
    }
    return both;
  }

  FlightDivergence divergence_at(std::size_t i, std::size_t position) const {
    const std::size_t length = expected_.size();
    Guess best = best_guess(i, position);
    // A rank that is blocked in its last operation may have intended to issue the expected one
    // next.
    const auto last = static_cast<std::size_t>(issued_.back().operation);
    if (i + 1 == issued_.size() && !record_.operations[last].completed && !best.ends_a_step)
      best.kind = HangKind::Order;
    std::size_t wrong = i;
    if (best.kind == HangKind::Order)
      std::tie(wrong, best.position) = first_difference(i, position);
    return {.kind = best.kind,
            .expected = at(best.position).instruction,
            .operation = issued_[wrong].operation,
            .step = record_.is_whole ? static_cast<int>(best.position / length) : -1,
            .progress = static_cast<double>(best.position) / static_cast<double>(length)};
  }

  std::vector<Expected> expected_;
  std::vector<Issued> issued_;
  const FlightRecord& record_;
  FollowedSchedule own_;
};

/// Maps ranks of the job to those of the schedule.
class PipelineRanks {
 public:
  PipelineRanks(const std::vector<FlightRecord>& records, int ranks) : ranks_(ranks) {
    for (const FlightRecord& record : records) {
      all_.insert(record.rank);
      for (const FlightGroup& group : record.groups)
        all_.insert(group.ranks.begin(), group.ranks.end());
    }
  }
  /// Returns -1 if the group does not belong to a pipeline.
  int rank_of(int rank, const FlightGroup& group) const {
    if (is_one_pipeline())
      return rank < ranks_ ? rank : -1;
    const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
    return static_cast<int>(group.ranks.size()) != ranks_ || found == group.ranks.end()
               ? -1
               : static_cast<int>(found - group.ranks.begin());
  }
  bool is_one_pipeline() const { return static_cast<int>(all_.size()) == ranks_; }
  std::size_t size() const { return all_.size(); }

 private:
  int ranks_;
  std::set<int> all_;
};

}  // namespace

std::vector<FollowedSchedule> followed_schedule(const std::vector<FlightRecord>& records,
                                                const plan::Program& program) {
  const PipelineRanks ranks(records, static_cast<int>(program.ranks.size()));
  std::vector<FollowedSchedule> all;
  bool has_place = ranks.is_one_pipeline();
  for (const FlightRecord& record : records) {
    std::vector<Issued> issued;
    int own_rank = ranks.is_one_pipeline() ? record.rank : -1;
    for (std::size_t at = 0; at < record.operations.size(); ++at) {
      const FlightOperation& own = record.operations[at];
      if (own.kind == FlightOperation::Kind::Collective)
        continue;
      const FlightGroup& group = record.groups[static_cast<std::size_t>(own.group)];
      const int place = ranks.rank_of(record.rank, group), peer = ranks.rank_of(own.peer, group);
      if (place < 0 || peer < 0)
        continue;
      own_rank = place;
      issued.push_back(
          {{own.kind == FlightOperation::Kind::Send, peer},
           static_cast<int>(at),
           own.launch,
           own.group,
           own.sequence,
           at > 0 && record.operations[at - 1].kind == FlightOperation::Kind::Collective});
    }
    has_place = has_place || own_rank >= 0;
    auto expected = own_rank >= 0 && own_rank < static_cast<int>(program.ranks.size())
                        ? expected_of(program, own_rank)
                        : std::vector<Expected>();
    all.push_back(Follower(std::move(expected), std::move(issued), record).run());
  }
  if (!has_place)
    throw plan::InputError(fmt::format(
        "the schedule has {} ranks, but the job has {} and no sends or receives in a group of {}",
        program.ranks.size(), ranks.size(), program.ranks.size()));
  return all;
}

}  // namespace pipewright::trace
