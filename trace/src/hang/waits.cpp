#include "hang/waits.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace pipewright::trace {
namespace {

using FlightKind = FlightOperation::Kind;

constexpr std::size_t most_waits = 4;  // of one rank, from each end of its open operations

bool is_send(const FlightOperation& own) { return own.kind == FlightKind::Send; }

/// Returns true for collectives that no rank can complete before all have begun it.
bool needs_all_ranks(const FlightOperation& own) {
  std::string name = own.name;
  std::erase(name, '_');
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  });
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  return has("allreduce") || has("allgather") || has("reducescatter") || has("alltoall") ||
         has("barrier");
}

/// The incomplete operations of a rank, in order.
struct OpenOperations {
  std::vector<int> operations;
  std::vector<int> holding;  // those that block the program: receives, collectives, and sends
                             // issued together with them
};

class GraphMaker {
 public:
  GraphMaker(const std::vector<FlightRecord>& records, const Communications& joined)
      : records_(records), joined_(joined) {
    graph_.waits.resize(joined.all.size());
    for (const FlightRecord& record : records) {
      OpenOperations open;
      std::set<int> holding;  // launches
      for (const FlightOperation& own : record.operations)
        if (!own.completed && !is_send(own))
          holding.insert(own.launch);
      for (int at = 0; at < static_cast<int>(record.operations.size()); ++at)
        if (const FlightOperation& own = record.operations[static_cast<std::size_t>(at)];
            !own.completed) {
          open.operations.push_back(at);
          if (holding.contains(own.launch))
            open.holding.push_back(at);
        }
      open_.push_back(std::move(open));
    }
    note_queues();
  }

  WaitGraph run() {
    for (int at = 0; at < static_cast<int>(joined_.all.size()); ++at)
      if (joined_.all[static_cast<std::size_t>(at)].is_pending)
        add(at);
    return std::move(graph_);
  }

 private:
  /// Key of an NCCL queue: a rank and the pair of ranks of a single send or receive, otherwise a
  /// rank and the whole group.
  using Queue = std::tuple<int, int, int>;  // record, group, peer or -1

  Queue queue_of(const FlightMember& member) const {
    const FlightOperation& own = operation_of(records_, member);
    const bool is_pair = own.kind != FlightKind::Collective && !own.is_coalesced;
    return {member.record, own.group, is_pair ? own.peer : -1};
  }
  /// Records the first open operation of each queue.
  void note_queues() {
    for (int r = 0; r < static_cast<int>(records_.size()); ++r)
      for (const int at : open_[static_cast<std::size_t>(r)].operations)
        fronts_.try_emplace(queue_of({r, at}), at);
  }
  int communication_of(int record, int operation) const {
    return joined_.of[static_cast<std::size_t>(record)][static_cast<std::size_t>(operation)];
  }
  int rank_of(int record) const { return records_[static_cast<std::size_t>(record)].rank; }

  void add(int at) {
    const Communication& own = joined_.all[static_cast<std::size_t>(at)];
    bool is_held_up = false, is_in_queue = false;
    for (const FlightMember& member : own.members)
      if (!operation_of(records_, member).completed) {
        const bool waits = add_queue(at, member);
        is_in_queue = is_in_queue || waits;
        is_held_up = add_stream(at, member) || is_held_up || waits;
      }
    add_behind(at, is_held_up);
    for (const int rank : own.missing)
      add_missing(at, rank, is_held_up);
    if (is_in_queue || !own.missing.empty())
      return;
    if (const auto found = disagreement(records_, joined_, at))
      graph_.stuck.push_back({StuckCause::Disagreement, at, found->rank, is_held_up});
    else if (!is_held_up)
      graph_.stuck.push_back({StuckCause::Still, at, still_rank(own), false});
  }

  /// Adds the ranks that have a collective open which others have completed. A rank that is held up
  /// by an earlier operation counts only if the others cannot have completed it without that rank.
  void add_behind(int at, bool is_held_up) {
    const Communication& own = joined_.all[static_cast<std::size_t>(at)];
    if (own.is_transfer || own.passed.empty() || disagreement(records_, joined_, at))
      return;
    for (const FlightMember& member : own.members)
      if (const FlightOperation& operation = operation_of(records_, member);
          !operation.completed && (!is_held_up || needs_all_ranks(operation)))
        graph_.stuck.push_back({StuckCause::Behind, at, rank_of(member.record), is_held_up});
  }

  bool add_queue(int at, const FlightMember& member) {
    const int front = fronts_.at(queue_of(member));
    const FlightRecord& record = records_[static_cast<std::size_t>(member.record)];
    const int launch = record.operations[static_cast<std::size_t>(front)].launch;
    if (launch == operation_of(records_, member).launch)
      return false;
    for (std::size_t other = static_cast<std::size_t>(front);
         other < record.operations.size() && record.operations[other].launch == launch; ++other)
      add_wait(at, {communication_of(member.record, static_cast<int>(other)), record.rank,
                    WaitCause::Queue});
    return true;
  }
  void add_wait(int at, const CommunicationWait& wait) {
    if (wait.to != at)
      graph_.waits[static_cast<std::size_t>(at)].push_back(wait);
  }

  /// Adds waits for the receives, collectives, and operations issued together with them, that the
  /// rank has open before this one.
  bool add_stream(int at, const FlightMember& member) {
    const FlightRecord& record = records_[static_cast<std::size_t>(member.record)];
    const OpenOperations& open = open_[static_cast<std::size_t>(member.record)];
    const int launch = operation_of(records_, member).launch;
    std::size_t count = 0;
    for (const int other : open.holding) {
      if (record.operations[static_cast<std::size_t>(other)].launch == launch ||
          other >= member.operation || count == 2 * most_waits)
        break;
      ++count;
      add_wait(at, {communication_of(member.record, other), record.rank, WaitCause::Stream});
    }
    return count > 0;
  }

  void add_missing(int at, int rank, bool is_held_up) {
    const int record = record_of_rank(records_, rank);
    const auto note = [&](StuckCause cause) {
      graph_.stuck.push_back({cause, at, rank, is_held_up});
    };
    if (record < 0)
      return note(StuckCause::Dead);
    const OpenOperations& open = open_[static_cast<std::size_t>(record)];
    if (has_passed(at, record))
      note(StuckCause::Passed);
    else if (open.operations.empty())
      note(StuckCause::Late);
    else if (open.holding.empty())
      note(StuckCause::OnlySends);
    add_host(at, record, open);
  }

  void add_host(int at, int record, const OpenOperations& open) {
    const bool has_only_sends = open.holding.empty();
    const std::vector<int>& waiting = has_only_sends ? open.operations : open.holding;
    for (std::size_t k = 0; k < waiting.size(); ++k)
      if (k < most_waits || k + most_waits >= waiting.size())
        add_wait(at, {communication_of(record, waiting[k]), rank_of(record),
                      has_only_sends ? WaitCause::Sends : WaitCause::Host});
  }

  /// Returns true if the record has a collective that the issuer of transfer `at` issued after it.
  bool has_passed(int at, int record) const {
    const Communication& own = joined_.all[static_cast<std::size_t>(at)];
    if (!own.is_transfer)
      return false;
    const FlightMember& issuer = own.members.front();
    const FlightRecord& other = records_[static_cast<std::size_t>(issuer.record)];
    for (std::size_t later = static_cast<std::size_t>(issuer.operation) + 1;
         later < other.operations.size(); ++later) {
      if (other.operations[later].kind != FlightKind::Collective)
        continue;
      const int to = joined_.of[static_cast<std::size_t>(issuer.record)][later];
      if (member_in(joined_.all[static_cast<std::size_t>(to)].members, record) != nullptr)
        return true;
    }
    return false;
  }

  /// Returns the rank that blocks a communication which all ranks have issued, among those that
  /// have not completed it: the sender of a transfer, since it computes the data; of a collective,
  /// the first rank that has not started it, or else the first one.
  int still_rank(const Communication& own) const {
    int open = -1;
    for (const FlightMember& member : own.members) {
      const FlightOperation& operation = operation_of(records_, member);
      if (operation.completed)
        continue;
      if (own.is_transfer ? is_send(operation) : !operation.started)
        return rank_of(member.record);
      if (open < 0)
        open = rank_of(member.record);
    }
    return open;
  }

  const std::vector<FlightRecord>& records_;
  const Communications& joined_;
  std::vector<OpenOperations> open_;  // by record
  std::map<Queue, int> fronts_;
  WaitGraph graph_;
};

/// Follows one wait of each communication until it returns to a visited one, and looks for the
/// shortest cycle through that one.
class CycleFinder {
 public:
  CycleFinder(const WaitGraph& graph, const std::vector<WaitCause>& causes)
      : causes_(causes), waits_(graph.waits), open_waits_(graph.waits.size()) {
    take_away_what_ends();
  }

  std::vector<WaitStep> run() {
    std::vector<int> seen(waits_.size(), -1);  // begin from which it was visited
    for (int begin = 0; begin < static_cast<int>(waits_.size()); ++begin) {
      int at = begin;
      while (is_left(at) && seen[static_cast<std::size_t>(at)] < 0) {
        seen[static_cast<std::size_t>(at)] = begin;
        at = first_of(at);
      }
      if (!is_left(at) || seen[static_cast<std::size_t>(at)] != begin)
        continue;
      const int end = at;
      do {
        look_from(at);
        at = first_of(at);
      } while (at != end);
    }
    return best_;
  }

 private:
  bool counts(const CommunicationWait& wait) const {
    return std::find(causes_.begin(), causes_.end(), wait.cause) != causes_.end();
  }
  bool is_left(int at) const { return open_waits_[static_cast<std::size_t>(at)] > 0; }
  int first_of(int at) const {
    for (const CommunicationWait& wait : waits_[static_cast<std::size_t>(at)])
      if (counts(wait) && is_left(wait.to))
        return wait.to;
    return at;
  }

  void take_away_what_ends() {
    std::vector<std::vector<int>> waiting(waits_.size());
    std::vector<int> ended;
    for (int at = 0; at < static_cast<int>(waits_.size()); ++at) {
      for (const CommunicationWait& wait : waits_[static_cast<std::size_t>(at)])
        if (counts(wait)) {
          ++open_waits_[static_cast<std::size_t>(at)];
          waiting[static_cast<std::size_t>(wait.to)].push_back(at);
        }
      if (!is_left(at))
        ended.push_back(at);
    }
    for (std::size_t k = 0; k < ended.size(); ++k)
      for (const int at : waiting[static_cast<std::size_t>(ended[k])])
        if (--open_waits_[static_cast<std::size_t>(at)] == 0)
          ended.push_back(at);
  }

  void look_from(int begin) {
    std::map<int, WaitStep> came_by;  // communication → previous step
    std::vector<int> level{begin};
    for (std::size_t depth = 1; !level.empty() && (best_.empty() || depth < best_.size());
         ++depth) {
      std::vector<int> next;
      for (const int from : level)
        for (const CommunicationWait& wait : waits_[static_cast<std::size_t>(from)])
          if (counts(wait) && is_left(wait.to) &&
              came_by.try_emplace(wait.to, WaitStep{from, wait}).second) {
            if (wait.to == begin)
              return keep(begin, came_by);
            next.push_back(wait.to);
          }
      level = std::move(next);
    }
  }
  void keep(int begin, const std::map<int, WaitStep>& came_by) {
    best_.clear();
    int at = begin;
    do {
      best_.push_back(came_by.at(at));
      at = best_.back().communication;
    } while (at != begin);
    std::reverse(best_.begin(), best_.end());
  }

  const std::vector<WaitCause>& causes_;
  const std::vector<std::vector<CommunicationWait>>& waits_;
  std::vector<int> open_waits_;  // number of waits that never end, by communication
  std::vector<WaitStep> best_;
};

}  // namespace

WaitGraph wait_graph(const std::vector<FlightRecord>& records, const Communications& joined) {
  return GraphMaker(records, joined).run();
}

std::vector<WaitStep> shortest_cycle(const WaitGraph& graph, const std::vector<WaitCause>& causes) {
  return CycleFinder(graph, causes).run();
}

std::vector<WaitStep> way_to(const WaitGraph& graph, int end) {
  std::vector<std::vector<std::pair<int, CommunicationWait>>> waiting(graph.waits.size());
  for (int from = 0; from < static_cast<int>(graph.waits.size()); ++from)
    for (const CommunicationWait& wait : graph.waits[static_cast<std::size_t>(from)])
      waiting[static_cast<std::size_t>(wait.to)].emplace_back(from, wait);
  std::map<int, WaitStep> came_by;  // communication → its step towards the end
  std::vector<int> order{end};
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const auto& [from, wait] : waiting[static_cast<std::size_t>(order[at])])
      if (from != end && came_by.try_emplace(from, WaitStep{from, wait}).second)
        order.push_back(from);
  std::vector<WaitStep> way;
  for (int at = order.back(); at != end; at = way.back().wait.to)
    way.push_back(came_by.at(at));
  return way;
}

}  // namespace pipewright::trace
