#include "hang/communication.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace pipewright::trace {
namespace {

using FlightKind = FlightOperation::Kind;
using Members = std::vector<FlightMember>;
/// Includes the ranks, because groups with the same name may differ between ranks.
using GroupKey = std::pair<std::string, std::vector<int>>;

/// Number of operations of a launch that may have completed before the launch has.
constexpr std::size_t widest_launch = 4;

struct Ends {
  Members sends, receives;
};

class FlightJoiner {
 public:
  explicit FlightJoiner(const std::vector<FlightRecord>& records) : records_(records) {
    for (const FlightRecord& record : records)
      result_.of.emplace_back(record.operations.size(), -1);
  }

  Communications run() {
    sort_operations();
    for (const auto& [channel, ends] : channels_)
      join_channel(std::get<1>(channel), std::get<2>(channel), ends);
    for (const auto& [key, members] : collectives_)
      add(members, group_ranks(members.front()), false);
    return std::move(result_);
  }

 private:
  const FlightGroup& group_at(const FlightMember& member) const {
    const FlightRecord& record = records_[static_cast<std::size_t>(member.record)];
    return record.groups[static_cast<std::size_t>(operation_of(records_, member).group)];
  }
  std::vector<int> group_ranks(const FlightMember& member) const { return group_at(member).ranks; }

  /// Numbers the groups, so that keys are short.
  int number_of(const FlightGroup& group) {
    return groups_.try_emplace({group.name, group.ranks}, static_cast<int>(groups_.size()))
        .first->second;
  }

  void sort_operations() {
    for (int r = 0; r < static_cast<int>(records_.size()); ++r) {
      const FlightRecord& record = records_[static_cast<std::size_t>(r)];
      std::vector<int> numbers;
      for (const FlightGroup& group : record.groups)
        numbers.push_back(number_of(group));
      std::map<std::pair<int, std::int64_t>, int> in_launch;  // coalesced collectives by index
      for (int at = 0; at < static_cast<int>(record.operations.size()); ++at) {
        const FlightOperation& own = record.operations[static_cast<std::size_t>(at)];
        const int group = numbers[static_cast<std::size_t>(own.group)];
        if (own.kind == FlightKind::Send)
          channels_[{group, record.rank, own.peer}].sends.push_back({r, at});
        else if (own.kind == FlightKind::Receive)
          channels_[{group, own.peer, record.rank}].receives.push_back({r, at});
        else
          collectives_[{group, own.sequence, in_launch[{group, own.sequence}]++}].push_back(
              {r, at});
        if (own.kind == FlightKind::Collective) {
          std::int64_t& last = last_sequence_.try_emplace({group, r}, own.sequence).first->second;
          last = std::max(last, own.sequence);
        }
      }
    }
  }

  /// Returns the oldest collective that both ranks have completed and still have in their records,
  /// as an index on each side: transfers between the two are counted from there.
  std::optional<std::pair<int, int>> behind_collective(int rank, int other) {
    const int record = record_of_rank(records_, rank), beside = record_of_rank(records_, other);
    if (record < 0 || beside < 0)
      return {};
    const auto [known, is_new] = common_.try_emplace({rank, other});
    if (!is_new)
      return known->second;
    for (const auto& [key, members] : collectives_) {
      const FlightMember *const own = member_in(members, record), *const peer =
                                                                      member_in(members, beside);
      if (own == nullptr || peer == nullptr || !operation_of(records_, *own).completed ||
          !operation_of(records_, *peer).completed)
        continue;
      const std::pair at{own->operation, peer->operation};
      if (!known->second || at < *known->second)
        known->second = at;
    }
    return known->second;
  }

  bool is_whole(const Members& members, int rank) const {
    const int record = members.empty() ? record_of_rank(records_, rank) : members.front().record;
    return record >= 0 && records_[static_cast<std::size_t>(record)].is_whole;
  }
  std::size_t completed(const Members& members) const {
    return static_cast<std::size_t>(std::count_if(
        members.begin(), members.end(),
        [&](const FlightMember& member) { return operation_of(records_, member).completed; }));
  }

  void join_channel(int sender, int receiver, const Ends& ends) {
    std::size_t skip_sends = 0, skip_receives = 0;  // whose other end was dropped from a ring
                                                    // buffer
    if (!is_whole(ends.sends, sender) || !is_whole(ends.receives, receiver)) {
      std::size_t sent = completed(ends.sends), received = completed(ends.receives);
      if (const auto known = behind_collective(sender, receiver);
          known && !ends.sends.empty() && !ends.receives.empty()) {
        const auto before = [&](const Members& members, int operation) {
          return static_cast<std::size_t>(std::count_if(
              members.begin(), members.end(),
              [&](const FlightMember& member) { return member.operation < operation; }));
        };
        const std::size_t s = before(ends.sends, known->first),
                          r = before(ends.receives, known->second);
        if (s + received <= r + sent + widest_launch && r + sent <= s + received + widest_launch) {
          sent = s;
          received = r;
        }
      }
      skip_sends = sent - std::min(sent, received);
      skip_receives = received - std::min(sent, received);
    }
    std::vector<int> ranks{sender, receiver};
    for (std::size_t at = 0; at < skip_sends; ++at)
      add({ends.sends[at]}, ranks, true);
    for (std::size_t at = 0; at < skip_receives; ++at)
      add({ends.receives[at]}, ranks, true);
    for (std::size_t at = 0;
         skip_sends + at < ends.sends.size() || skip_receives + at < ends.receives.size(); ++at) {
      Members members;
      if (skip_sends + at < ends.sends.size())
        members.push_back(ends.sends[skip_sends + at]);
      if (skip_receives + at < ends.receives.size())
        members.push_back(ends.receives[skip_receives + at]);
      add(members, ranks, true);
    }
  }

  /// Returns true if a rank that does not list this collective has completed it: a ring buffer
  /// drops the oldest operations, and a dump of active operations the complete ones. Either lists a
  /// later collective of the group, or its status says so.
  bool has_passed(int rank, const FlightMember& member) const {
    const int record = record_of_rank(records_, rank);
    if (record < 0 || records_[static_cast<std::size_t>(record)].is_whole)
      return false;
    const FlightGroup& group = group_at(member);
    const std::int64_t sequence = operation_of(records_, member).sequence;
    for (const FlightGroup& own : records_[static_cast<std::size_t>(record)].groups)
      if (own.last_completed >= sequence && own.name == group.name && own.ranks == group.ranks)
        return true;
    const auto last = last_sequence_.find({groups_.at({group.name, group.ranks}), record});
    return last != last_sequence_.end() && last->second > sequence;
  }

  void add(const Members& members, std::vector<int> ranks, bool is_transfer) {
    Communication own{.ranks = std::move(ranks),
                      .members = members,
                      .missing = {},
                      .passed = {},
                      .is_transfer = is_transfer};
    for (const FlightMember& member : members) {
      result_
          .of[static_cast<std::size_t>(member.record)][static_cast<std::size_t>(member.operation)] =
          static_cast<int>(result_.all.size());
      own.is_pending = own.is_pending || !operation_of(records_, member).completed;
    }
    if (own.is_pending)
      add_others(own);
    result_.all.push_back(std::move(own));
  }
  /// Finds the ranks that have completed a pending communication, and those that have not issued
  /// it.
  void add_others(Communication& own) const {
    for (const int rank : own.ranks) {
      const auto member =
          std::find_if(own.members.begin(), own.members.end(), [&](const FlightMember& other) {
            return records_[static_cast<std::size_t>(other.record)].rank == rank;
          });
      if (member != own.members.end()) {
        if (operation_of(records_, *member).completed)
          own.passed.push_back(rank);
      } else if (!own.is_transfer && has_passed(rank, own.members.front())) {
        own.passed.push_back(rank);
      } else {
        own.missing.push_back(rank);
      }
    }
  }

  const std::vector<FlightRecord>& records_;
  Communications result_;
  std::map<GroupKey, int> groups_;
  std::map<std::pair<int, int>, std::optional<std::pair<int, int>>> common_;  // by ranks
  std::map<std::tuple<int, int, int>, Ends> channels_;  // group, sender, receiver
  std::map<std::tuple<int, std::int64_t, int>, Members> collectives_;
  std::map<std::pair<int, int>, std::int64_t>
      last_sequence_;  // of collectives, by group and record
};

}  // namespace

const FlightOperation& operation_of(const std::vector<FlightRecord>& records,
                                    const FlightMember& member) {
  return records[static_cast<std::size_t>(member.record)]
      .operations[static_cast<std::size_t>(member.operation)];
}

const FlightMember* member_in(const std::vector<FlightMember>& members, int record) {
  const auto found = std::lower_bound(
      members.begin(), members.end(), record,
      [](const FlightMember& member, int wanted) { return member.record < wanted; });
  return found != members.end() && found->record == record ? &*found : nullptr;
}

int record_of_rank(const std::vector<FlightRecord>& records, int rank) {
  const auto found =
      std::lower_bound(records.begin(), records.end(), rank,
                       [](const FlightRecord& record, int wanted) { return record.rank < wanted; });
  return found != records.end() && found->rank == rank ? static_cast<int>(found - records.begin())
                                                       : -1;
}

Communications joined(const std::vector<FlightRecord>& records) {
  return FlightJoiner(records).run();
}

}  // namespace pipewright::trace
