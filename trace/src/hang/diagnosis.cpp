#include "pipewright/trace/hang/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "hang/followed_schedule.hpp"
#include "hang/hang_words.hpp"
#include "hang/waits.hpp"

namespace pipewright::trace {
namespace {

using FlightKind = FlightOperation::Kind;

constexpr std::size_t most_told = 7;     // ranks at fault after the first, in the sentence
constexpr std::size_t most_listed = 16;  // numbers of ranks

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
             !found_stuck(StuckCause::Behind, true) && !found_stuck(StuckCause::Passed, true) &&
             !found_without_order() && !found_stuck(StuckCause::Disagreement, true))
      tell_open();
    if (own_.ranks.empty() && own_.rank >= 0 && own_.kind != HangKind::Unknown)
      own_.ranks = {own_.rank};
    note_waits_for_absent_ranks();
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
    note_later_divergences(record);
    if (found.kind != HangKind::Order)
      tell_way_to_rank(own_.rank);
    if (own_.waits.empty())
      tell_cycle();
    return true;
  }
  void note_later_divergences(int first) {
    std::vector<int> later;
    for (int r = 0; r < static_cast<int>(followed_.size()); ++r)
      if (r != first && followed_[static_cast<std::size_t>(r)].divergence)
        later.push_back(rank_of(r));
    if (!later.empty())
      own_.notes.push_back(fmt::format("rank{} {} left the schedule later",
                                       later.size() == 1 ? "" : "s", shortened(later)));
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
    // A rank without a dump may be innocent: its dump may be lost.
    if (found_left_for_collective() || found_stuck(StuckCause::Late, true) ||
        found_stuck(StuckCause::Dead, true))
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

  /// Returns the place of a stuck communication among those of its cause: the first explains most.
  std::pair<bool, int> place_of(const StuckCommunication& stuck) const {
    const Communication& at = joined_.all[static_cast<std::size_t>(stuck.communication)];
    if (stuck.cause == StuckCause::Behind)
      return {false, member_of(at, stuck.rank).operation};
    return {stuck.is_held_up, at.members.front().operation};
  }

  /// Returns the first stuck communication of each rank with this cause.
  std::map<int, const StuckCommunication*> stuck_by_rank(StuckCause cause,
                                                         bool may_be_held_up) const {
    std::map<int, const StuckCommunication*> by_rank;
    for (const StuckCommunication& stuck : graph_.stuck)
      if (stuck.cause == cause && (may_be_held_up || !stuck.is_held_up))
        if (const auto [found, is_new] = by_rank.try_emplace(stuck.rank, &stuck);
            !is_new && place_of(stuck) < place_of(*found->second))
          found->second = &stuck;
    return by_rank;
  }

  bool found_stuck(StuckCause cause, bool may_be_held_up) {
    const auto by_rank = stuck_by_rank(cause, may_be_held_up);
    const auto best = std::min_element(
        by_rank.begin(), by_rank.end(),
        [&](const auto& a, const auto& b) { return place_of(*a.second) < place_of(*b.second); });
    // A rank that only waits in a cycle of sends is not late.
    if (best == by_rank.end() || (cause == StuckCause::OnlySends && are_all_sending(best->first)))
      return false;
    tell(*best->second);
    std::vector<const StuckCommunication*> others;
    add_others(cause, others);
    if (cause == StuckCause::Behind)
      add_others(StuckCause::Late, others);
    tell_others(others);
    return true;
  }
  /// Adds ranks that are at fault by themselves, whatever else waits.
  void add_others(StuckCause cause, std::vector<const StuckCommunication*>& others) {
    if (cause == StuckCause::OnlySends || cause == StuckCause::Still)
      return;
    const bool is_certain =
        cause == StuckCause::Behind || cause == StuckCause::Late || cause == StuckCause::Dead;
    for (const auto& [rank, stuck] : stuck_by_rank(cause, is_certain))
      if (std::find(own_.ranks.begin(), own_.ranks.end(), rank) == own_.ranks.end()) {
        own_.ranks.push_back(rank);
        others.push_back(stuck);
      }
  }
  void tell_others(const std::vector<const StuckCommunication*>& others) {
    for (std::size_t at = 0; at < std::min(most_told, others.size()); ++at)
      own_.what += "; " + words_of_stuck(*others[at]);
    if (others.size() > most_told)
      own_.what += fmt::format("; and {} more ranks", others.size() - most_told);
  }

  void tell_open() {
    const auto is_open = [](const Communication& own) { return own.is_pending; };
    const auto first = std::find_if(joined_.all.begin(), joined_.all.end(), is_open);
    own_.kind = HangKind::Unknown;
    own_.rank = rank_of(first->members.front().record);
    own_.operation = words_of(first->members.front());
    own_.what = fmt::format("{} operations are open, and the dumps do not show why",
                            std::count_if(joined_.all.begin(), joined_.all.end(), is_open));
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
    own_.ranks = {stuck.rank};
    own_.kind = kind_of(stuck);
    own_.what = words_of_stuck(stuck);
    tell_last_operation(stuck, at);
    tell_way(way_to(graph_, stuck.communication));
    if (stuck.cause != StuckCause::Behind)
      own_.waits.push_back(end_of_way(stuck, at));
  }

  HangKind kind_of(const StuckCommunication& stuck) const {
    switch (stuck.cause) {
      case StuckCause::Disagreement: {
        const auto found = disagreement(records_, joined_, stuck.communication).value();
        return found.is_collective ? HangKind::Collective
               : found.is_sizes    ? HangKind::Sizes
                                   : HangKind::Types;
      }
      case StuckCause::Dead:
        return HangKind::Dead;
      case StuckCause::Passed: {
        const Communication& at = joined_.all[static_cast<std::size_t>(stuck.communication)];
        return operation_of(records_, member_beside(at, stuck.rank)).kind == FlightKind::Send
                   ? HangKind::MissingReceive
                   : HangKind::MissingSend;
      }
      case StuckCause::Behind:
      case StuckCause::Late:
      case StuckCause::OnlySends:
      case StuckCause::Still:
        break;
    }
    return HangKind::Late;
  }

  std::string words_of_stuck(const StuckCommunication& stuck) const {
    const Communication& at = joined_.all[static_cast<std::size_t>(stuck.communication)];
    const FlightMember &own = member_of(at, stuck.rank), &other = member_beside(at, stuck.rank);
    const int waiting = rank_of(other.record);
    switch (stuck.cause) {
      case StuckCause::Disagreement: {
        const HangKind kind = kind_of(stuck);
        return fmt::format("rank {} is at {}, rank {} at {}", stuck.rank, with_tensors(own, kind),
                           waiting, with_tensors(other, kind));
      }
      case StuckCause::Behind:
        return fmt::format(
            "rank {} has issued {}, and rank{} {} {} gone past it: its device makes no progress",
            stuck.rank, words_of(own), at.passed.size() == 1 ? "" : "s", shortened(at.passed),
            at.passed.size() == 1 ? "has" : "have");
      case StuckCause::Dead:
        return fmt::format("rank {} has left no dump, and rank {} waits for it at {}", stuck.rank,
                           waiting, words_of(other));
      case StuckCause::Passed:
        return fmt::format("rank {} continued without the operation that rank {} waits for at {}",
                           stuck.rank, waiting, words_of(other));
      case StuckCause::Late:
      case StuckCause::OnlySends:
        return fmt::format(
            "rank {} is late: it is in no communication, and rank {} waits for it at {}",
            stuck.rank, waiting, words_of(other));
      case StuckCause::Still:
        break;
    }
    return fmt::format(
        "rank {} has issued {}, but it makes no progress: its data is not computed, or the link "
        "does not transfer it",
        stuck.rank, words_of(own));
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
      case StuckCause::Behind:
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
    own_.ranks.assign(ranks.begin(), ranks.end());
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

  /// Lists numbers of ranks, the first 16 of them.
  static std::string shortened(std::vector<int> ranks) {
    const bool is_long = ranks.size() > most_listed;
    ranks.resize(std::min(ranks.size(), most_listed));
    return fmt::format("{}{}", fmt::join(ranks, ", "), is_long ? ", …" : "");
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
    own_.notes.push_back(fmt::format("no dump of {} rank{}: {}", absent.size(),
                                     absent.size() == 1 ? "" : "s",
                                     shortened({absent.begin(), absent.end()})));
  }
  void note_waits_for_absent_ranks() {
    if (own_.kind == HangKind::Dead)
      return;
    std::vector<int> awaited;
    for (const auto& [rank, stuck] : stuck_by_rank(StuckCause::Dead, true))
      awaited.push_back(rank);
    if (!awaited.empty())
      own_.notes.push_back(fmt::format("others wait for rank{} {} too, whose dump is missing",
                                       awaited.size() == 1 ? "" : "s", shortened(awaited)));
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
