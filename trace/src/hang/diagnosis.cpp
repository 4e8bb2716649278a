#include "pipewright/trace/hang/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hang/followed_schedule.hpp"
#include "hang/hang_words.hpp"
#include "hang/waits.hpp"

namespace pipewright::trace {
namespace {

using FlightKind = FlightOperation::Kind;

const std::vector<WaitCause> certain{WaitCause::Queue}, usual{WaitCause::Queue, WaitCause::Stream},
    likely{WaitCause::Queue, WaitCause::Stream, WaitCause::Host},
    all_waits{WaitCause::Queue, WaitCause::Stream, WaitCause::Host, WaitCause::Sends};

class Diagnoser {
 public:
  Diagnoser(const std::vector<FlightRecord>& records, const std::vector<plan::Program>& schedules)
      : records_(records), joined_(joined(records)), graph_(wait_graph(records, joined_)) {
    follow(schedules);
  }

  HangDiagnosis run() {
    note_absent_ranks();
    if (!is_any_open())
      own_.what = "every operation of every rank is complete: the job does not hang";
    else if (!diverged() && !found_stuck(StuckCause::Disagreement, false) &&
             !found_stuck(StuckCause::Dead, true) && !found_stuck(StuckCause::Passed, true) &&
             !found_without_order() && !found_stuck(StuckCause::Disagreement, true))
      own_.what = "the dumps do not show why the job hangs";
    return std::move(own_);
  }

 private:
  // ---- schedule

  void follow(const std::vector<plan::Program>& schedules) {
    std::size_t most = 0;
    for (const plan::Program& program : schedules) {
      auto followed = followed_schedule(records_, program);
      std::size_t sum = 0;
      for (const FollowedSchedule& rank : followed)
        sum += rank.followed;
      if (followed_.empty() || sum > most) {
        most = sum;
        followed_ = std::move(followed);
      }
    }
    const auto parted =
        std::count_if(followed_.begin(), followed_.end(),
                      [](const FollowedSchedule& rank) { return rank.divergence.has_value(); });
    if (parted > 1 && 2 * parted > static_cast<std::ptrdiff_t>(followed_.size())) {
      own_.notes.push_back(
          fmt::format("{} of {} ranks send and receive in another order than the schedule has: it "
                      "is assumed to belong to another job",
                      parted, followed_.size()));
      followed_.clear();
    }
  }
  std::optional<plan::Instruction> instruction_of(const FlightMember& member) const {
    if (followed_.empty())
      return {};
    return followed_[static_cast<std::size_t>(member.record)]
        .instructions[static_cast<std::size_t>(member.operation)];
  }
  void set_instruction(const plan::Instruction& instruction) {
    own_.instruction = to_string(instruction);
    own_.stage = instruction.stage;
    own_.microbatch = instruction.microbatch;
  }

  bool diverged() {
    int record = -1;
    for (int r = 0; r < static_cast<int>(followed_.size()); ++r)
      if (const auto& found = followed_[static_cast<std::size_t>(r)].divergence;
          found && (record < 0 || found->progress < divergence_of(record).progress))
        record = r;
    if (record < 0)
      return false;
    const FlightDivergence& found = divergence_of(record);
    const FlightMember member{record, found.operation};
    own_.kind = found.kind;
    own_.rank = rank_of(record);
    own_.step = found.step;
    own_.operation = words_of(member);
    own_.place = operation_of(records_, member).place;
    set_instruction(found.expected);
    own_.what = divergence_words(found, member);
    if (found.kind != HangKind::Order)
      tell_way_to_rank(own_.rank);
    if (own_.waits.empty())
      tell_cycle();
    return true;
  }
  const FlightDivergence& divergence_of(int record) const {
    return *followed_[static_cast<std::size_t>(record)].divergence;
  }
  std::string divergence_words(const FlightDivergence& found, const FlightMember& member) const {
    const std::string expected = to_string(found.expected);
    switch (found.kind) {
      case HangKind::MissingSend:
      case HangKind::MissingReceive:
        return fmt::format("rank {} skipped {} and continued with {}", own_.rank, expected,
                           words_of(member));
      case HangKind::Extra:
        return fmt::format("rank {} issued {}, but the schedule has {}", own_.rank,
                           words_of(member), expected);
      default:
        return fmt::format("rank {} issued {} before {}", own_.rank, words_of(member), expected);
    }
  }

  // ---- stuck communications

  bool found_without_order() {
    // If all ranks follow the schedule, its order does not explain a cycle.
    const bool is_followed = !followed_.empty();
    if (!is_followed && found_cycle(certain))
      return true;
    if (found_left_for_collective() || found_stuck(StuckCause::Late, true))
      return true;
    if (!is_followed && (found_cycle(usual) || found_cycle(likely)))
      return true;
    return found_stuck(StuckCause::OnlySends, true) || found_stuck(StuckCause::Still, true) ||
           found_cycle(all_waits);
  }

  /// Finds a rank that left the schedule in the middle of a step for a collective, together with a
  /// rank that waits for its next send or receive.
  bool found_left_for_collective() {
    for (std::size_t r = 0; r < followed_.size(); ++r) {
      const auto& operations = records_[r].operations;
      const FollowedSchedule& rank = followed_[r];
      if (operations.empty() || !rank.next || rank.is_between_steps)
        continue;
      for (std::size_t at = operations.size();
           at-- > 0 && operations[at].kind == FlightKind::Collective;)
        for (const int missing : joined_.all[static_cast<std::size_t>(joined_.of[r][at])].missing)
          if (const auto waiting = waiting_for(records_[r].rank, missing)) {
            tell({StuckCause::Passed, *waiting, records_[r].rank, false});
            return true;
          }
    }
    return false;
  }
  /// Returns a transfer that `other` has issued and `rank` has not.
  std::optional<int> waiting_for(int rank, int other) const {
    for (std::size_t at = 0; at < joined_.all.size(); ++at) {
      const Communication& own = joined_.all[at];
      if (own.is_transfer && own.missing == std::vector{rank} &&
          rank_of(own.members.front().record) == other)
        return static_cast<int>(at);
    }
    return {};
  }

  int first_operation(const StuckCommunication& stuck) const {
    return joined_.all[static_cast<std::size_t>(stuck.communication)].members.front().operation;
  }

  bool found_stuck(StuckCause cause, bool may_be_held_up) {
    const StuckCommunication* best = nullptr;
    for (const StuckCommunication& stuck : graph_.stuck)
      if (stuck.cause == cause && (may_be_held_up || !stuck.is_held_up) &&
          (best == nullptr || std::pair(stuck.is_held_up, first_operation(stuck)) <
                                  std::pair(best->is_held_up, first_operation(*best))))
        best = &stuck;
    // A rank that only waits in a cycle of sends is not late.
    if (best == nullptr || (cause == StuckCause::OnlySends && are_all_sending(best->rank)))
      return false;
    tell(*best);
    return true;
  }
  /// Returns true if the rank is in a cycle in which every rank has only sends open.
  bool are_all_sending(int rank) const {
    std::set<int> sending;
    for (const StuckCommunication& stuck : graph_.stuck)
      if (stuck.cause == StuckCause::OnlySends)
        sending.insert(stuck.rank);
    const auto cycle = shortest_cycle(graph_, {WaitCause::Sends});
    return std::any_of(cycle.begin(), cycle.end(),
                       [&](const WaitStep& step) { return step.wait.rank == rank; }) &&
           std::all_of(cycle.begin(), cycle.end(),
                       [&](const WaitStep& step) { return sending.contains(step.wait.rank); });
  }

  void tell(const StuckCommunication& stuck) {
    const Communication& at = joined_.all[static_cast<std::size_t>(stuck.communication)];
    own_.rank = stuck.rank;
    const FlightMember& other = member_beside(at, stuck.rank);
    switch (stuck.cause) {
      case StuckCause::Disagreement:
        tell_disagreement(stuck, at);
        break;
      case StuckCause::Dead:
        own_.kind = HangKind::Dead;
        own_.what = fmt::format("rank {} has left no dump, and rank {} waits for it at {}",
                                stuck.rank, rank_of(other.record), words_of(other));
        break;
      case StuckCause::Passed:
        own_.kind = operation_of(records_, other).kind == FlightKind::Send
                        ? HangKind::MissingReceive
                        : HangKind::MissingSend;
        own_.what =
            fmt::format("rank {} continued without the operation that rank {} waits for at {}",
                        stuck.rank, rank_of(other.record), words_of(other));
        break;
      case StuckCause::Late:
      case StuckCause::OnlySends:
        own_.kind = HangKind::Late;
        own_.what = fmt::format(
            "rank {} is late: it is in no communication, and rank {} waits for it at {}",
            stuck.rank, rank_of(other.record), words_of(other));
        break;
      case StuckCause::Still:
        own_.kind = HangKind::Late;
        own_.what = fmt::format(
            "rank {} has issued {}, but it makes no progress: its data is not computed, or the "
            "link does not transfer it",
            stuck.rank, words_of(member_of(at, stuck.rank)));
        break;
    }
    tell_last_operation(stuck, at);
    tell_way(way_to(graph_, stuck.communication));
    own_.waits.push_back(end_of_way(stuck, at));
  }

  void tell_disagreement(const StuckCommunication& stuck, const Communication& at) {
    const auto found = disagreement(records_, joined_, stuck.communication).value();
    own_.kind = found.is_collective ? HangKind::Collective
                : found.is_sizes    ? HangKind::Sizes
                                    : HangKind::Types;
    const FlightMember &odd = member_of(at, stuck.rank), &other = member_beside(at, stuck.rank);
    own_.what =
        fmt::format("rank {} is at {}, rank {} at {}", stuck.rank, with_tensors(odd, own_.kind),
                    rank_of(other.record), with_tensors(other, own_.kind));
  }
  std::string with_tensors(const FlightMember& member, HangKind kind) const {
    const FlightOperation& operation = operation_of(records_, member);
    const FlightTensors& tensors =
        operation.kind == FlightKind::Receive ? operation.outputs : operation.inputs;
    if (kind == HangKind::Collective)
      return words_of(member);
    return fmt::format("{} of {} {}", words_of(member), tensors.types, tensors.sizes);
  }

  /// Reports the position of the rank at fault: the operation itself, or after the last one that it
  /// issued.
  void tell_last_operation(const StuckCommunication& stuck, const Communication& at) {
    const int record = record_of_rank(records_, stuck.rank);
    if (record < 0)
      return;
    for (const FlightMember& member : at.members)
      if (member.record == record) {
        own_.operation = words_of(member);
        own_.place = operation_of(records_, member).place;
        if (const auto instruction = instruction_of(member))
          set_instruction(*instruction);
        return;
      }
    const auto& operations = records_[static_cast<std::size_t>(record)].operations;
    if (!operations.empty()) {
      const FlightMember last{record, static_cast<int>(operations.size()) - 1};
      own_.operation = "behind " + words_of(last);
      own_.place = operations.back().place;
    }
    if (!followed_.empty())
      if (const auto& next = followed_[static_cast<std::size_t>(record)].next)
        set_instruction(*next);
  }

  HangWait end_of_way(const StuckCommunication& stuck, const Communication& at) const {
    const FlightMember& other = member_beside(at, stuck.rank);
    std::string because;
    switch (stuck.cause) {
      case StuckCause::Disagreement:
        because = "is at " + with_tensors(member_of(at, stuck.rank), own_.kind);
        break;
      case StuckCause::Dead:
        because = "has left no dump";
        break;
      case StuckCause::Passed:
        because = "continued without it";
        break;
      case StuckCause::Late:
      case StuckCause::OnlySends:
        because = "has not issued it and is in no communication";
        break;
      case StuckCause::Still:
        because = "has issued it";
        break;
    }
    return {rank_of(other.record), words_of(other), stuck.rank, std::move(because)};
  }

  // ---- waits

  bool found_cycle(const std::vector<WaitCause>& causes) {
    const auto cycle = shortest_cycle(graph_, causes);
    if (cycle.empty())
      return false;
    own_.kind = HangKind::Order;
    tell_way(cycle);
    own_.is_cycle = true;
    std::set<int> ranks;
    for (const HangWait& wait : own_.waits)
      ranks.insert({wait.rank, wait.waits_for});
    if (!ranks.empty())
      own_.rank = *ranks.begin();
    own_.what = fmt::format("ranks {} wait for each other", fmt::join(ranks, ", "));
    if (!own_.waits.empty())
      for (const HangWait& wait : own_.waits)
        if (wait.rank == own_.rank)
          own_.operation = wait.at;
    return true;
  }
  void tell_cycle() {
    for (const auto* causes : {&certain, &usual, &likely, &all_waits})
      if (const auto cycle = shortest_cycle(graph_, *causes); !cycle.empty()) {
        tell_way(cycle);
        own_.is_cycle = true;
        return;
      }
    tell_way_to_rank(own_.rank);
  }
  /// Reports the waits that lead to a communication which the rank has not issued.
  void tell_way_to_rank(int rank) {
    for (const StuckCommunication& stuck : graph_.stuck)
      if (stuck.rank == rank && stuck.cause != StuckCause::Still &&
          stuck.cause != StuckCause::Disagreement) {
        tell_way(way_to(graph_, stuck.communication));
        own_.waits.push_back(
            end_of_way(stuck, joined_.all[static_cast<std::size_t>(stuck.communication)]));
        return;
      }
  }

  void tell_way(const std::vector<WaitStep>& way) {
    int before = -1;  // the rank at which the last step arrived
    for (const WaitStep& step : way) {
      const Communication& at = joined_.all[static_cast<std::size_t>(step.communication)];
      const FlightMember* waiting = nullptr;
      for (const FlightMember& member : at.members)
        if (rank_of(member.record) != step.wait.rank &&
            (waiting == nullptr || rank_of(member.record) == before))
          waiting = &member;
      before = step.wait.rank;
      if (waiting == nullptr)
        continue;
      const Communication& next = joined_.all[static_cast<std::size_t>(step.wait.to)];
      const std::string stands = words_of(member_of(next, step.wait.rank));
      const bool has_issued =
          std::find(at.missing.begin(), at.missing.end(), step.wait.rank) == at.missing.end();
      own_.waits.push_back({rank_of(waiting->record), words_of(*waiting), step.wait.rank,
                            has_issued ? "has issued it after " + stands
                                       : "has not issued it and waits in " + stands});
    }
  }

  // ---- ranks and texts

  int rank_of(int record) const { return records_[static_cast<std::size_t>(record)].rank; }
  const FlightMember& member_of(const Communication& at, int rank) const {
    for (const FlightMember& member : at.members)
      if (rank_of(member.record) == rank)
        return member;
    return at.members.front();
  }
  /// Returns a member of another rank that has not completed it.
  const FlightMember& member_beside(const Communication& at, int rank) const {
    const FlightMember* best = &at.members.front();
    for (const FlightMember& member : at.members)
      if (rank_of(member.record) != rank && !operation_of(records_, member).completed) {
        best = &member;
        break;
      }
    return *best;
  }
  std::string words_of(const FlightMember& member) const {
    const FlightRecord& record = records_[static_cast<std::size_t>(member.record)];
    const FlightOperation& own = operation_of(records_, member);
    const std::string words =
        in_words(own, name_of(record.groups[static_cast<std::size_t>(own.group)]));
    const auto instruction = instruction_of(member);
    return instruction ? fmt::format("{} ({})", to_string(*instruction), words) : words;
  }

  bool is_any_open() const {
    return std::any_of(joined_.all.begin(), joined_.all.end(),
                       [](const Communication& own) { return own.is_pending; });
  }
  void note_absent_ranks() {
    std::set<int> absent;
    for (const FlightRecord& record : records_)
      for (const FlightGroup& group : record.groups)
        for (const int rank : group.ranks)
          if (record_of_rank(records_, rank) < 0)
            absent.insert(rank);
    if (absent.empty())
      return;
    const std::size_t all = absent.size();
    while (absent.size() > 16)
      absent.erase(std::prev(absent.end()));
    own_.notes.push_back(fmt::format("no dump of {} rank{}: {}{}", all, all == 1 ? "" : "s",
                                     fmt::join(absent, ", "), all > 16 ? ", …" : ""));
  }

  const std::vector<FlightRecord>& records_;
  const Communications joined_;
  const WaitGraph graph_;
  std::vector<FollowedSchedule> followed_;  // by record; empty: no schedule
  HangDiagnosis own_;
};

}  // namespace

HangDiagnosis diagnose_hang(const std::vector<FlightRecord>& records,
                            const std::vector<plan::Program>& schedules) {
  return Diagnoser(records, schedules).run();
}

}  // namespace pipewright::trace
