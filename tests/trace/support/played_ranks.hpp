// Simulates ranks that run a Program as torch does with NCCL and hang at an injected fault, and
// returns the dump that FlightRecorder would have kept for each.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "trace/support/pickle_bytes.hpp"

namespace pipewright::test {

/// Determines which operations share a process group of torch, and with it an NCCL queue.
enum class PlayedGroups {
  Pairs,   // all in one group, one by one: a queue for each pair of ranks
  Edges,   // a group for each direction between two ranks
  Batches  // batch_isend_irecv of adjacent operations: one queue
};

struct PlayedItem {
  enum class Kind { Compute, Send, Receive, Collective };
  Kind kind = Kind::Compute;
  int peer = -1;
  std::string name{};
  std::vector<int> sizes{4, 512};
  std::string type = "BFloat16";
  int launch = -1;
};

struct PlayedJob {
  std::vector<std::vector<PlayedItem>> ranks;
  std::vector<std::size_t> stops;  // the item that a rank never begins
  PlayedGroups groups = PlayedGroups::Pairs;
  bool host_waits = false;  // for each receive, before it continues
};

/// Repeats the Program `steps` times, each time with collectives at its end for which all ranks
/// wait.
inline PlayedJob played(const plan::Program& program, int steps, PlayedGroups groups,
                        bool host_waits) {
  PlayedJob job{.ranks = std::vector<std::vector<PlayedItem>>(program.ranks.size()),
                .stops = std::vector<std::size_t>(program.ranks.size(), std::size_t(-1)),
                .groups = groups,
                .host_waits = host_waits};
  using Kind = PlayedItem::Kind;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    auto& items = job.ranks[rank];
    for (int step = 0; step < steps; ++step) {
      for (const plan::Instruction& own : program.ranks[rank])
        if (is_send(own.kind) || is_receive(own.kind))
          items.push_back({.kind = is_send(own.kind) ? Kind::Send : Kind::Receive,
                           .peer = peer_rank(program, own)});
        else if (items.empty() || items.back().kind != Kind::Compute)
          items.push_back({});
      items.push_back({.kind = Kind::Collective, .name = "all_reduce", .sizes = {1}});
      items.push_back({.kind = Kind::Collective, .name = "broadcast", .sizes = {1}});
    }
  }
  return job;
}

class PlayedRanks {
 public:
  explicit PlayedRanks(const PlayedJob& job) : job_(job), at_(job.ranks.size()) {
    issued_.resize(job.ranks.size());
    fronts_.resize(job.ranks.size());
    while (issue() | complete()) {
    }
  }

  bool stands_still() const {
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      if (at_[rank] < job_.ranks[rank].size())
        return true;
      for (const Issued& own : issued_[rank])
        if (!own.done)
          return true;
    }
    return false;
  }
  int transfers_issued(int rank) const {
    int count = 0;
    for (const Issued& own : issued_[static_cast<std::size_t>(rank)])
      count += own.kind != PlayedItem::Kind::Collective ? 1 : 0;
    return count;
  }
  bool has_issued_all(int rank) const {
    return at_[static_cast<std::size_t>(rank)] == job_.ranks[static_cast<std::size_t>(rank)].size();
  }

  /// Returns the dump of a rank with its newest `most` entries. `times_kernels` is the effect of
  /// TORCH_NCCL_ENABLE_TIMING, without which no operation is ever "started".
  std::string dump(int rank, std::size_t most, bool times_kernels) const {
    std::vector<std::string> entries;
    const auto& all = issued_[static_cast<std::size_t>(rank)];
    std::map<std::string, int> p2p, collectives;
    std::size_t op = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Issued& own = all[k];
      const bool is_p2p = own.kind != PlayedItem::Kind::Collective;
      const bool begins = own.launch < 0 || k == 0 || all[k - 1].launch != own.launch;
      const bool ends = own.launch >= 0 && (k + 1 == all.size() || all[k + 1].launch != own.launch);
      int& sequence = (is_p2p ? p2p : collectives)[own.group];
      sequence += begins ? 1 : 0;
      const std::string state = is_launch_done(rank, k)              ? "completed"
                                : times_kernels && is_ready(rank, k) ? "started"
                                                                     : "scheduled";
      const auto entry = [&](const std::string& name, const std::string& in, bool has_tensors) {
        const std::string sizes =
            has_tensors ? pickle_list({pickle_integers(own.sizes)}) : pickle_list({});
        const std::string types =
            has_tensors ? pickle_list({pickle_text(own.type)}) : pickle_list({});
        entries.push_back(pickle_dict(
            {{"record_id", pickle_integer(static_cast<long>(entries.size()))},
             {"pg_id", pickle_integer(0)},
             {"process_group", pickle_pair(pickle_text(own.group), pickle_text("pipeline"))},
             {"collective_seq_id", pickle_integer(is_p2p ? 0 : sequence)},
             {"p2p_seq_id", pickle_integer(is_p2p ? sequence : 0)},
             {"op_id", pickle_integer(static_cast<long>(++op))},
             {"profiling_name", pickle_text("nccl:" + name)},
             {"time_created_ns", pickle_integer(1'795'745'260'283'843'442)},
             {"input_sizes", sizes},
             {"input_dtypes", types},
             {"output_sizes", sizes},
             {"output_dtypes", types},
             {"state", pickle_text(in)},
             {"time_discovered_started_ns", pickle_none()},
             {"time_discovered_completed_ns", pickle_none()},
             {"retired", pickle_flag(in == "completed")},
             {"timeout_ms", pickle_integer(600'000)},
             {"is_p2p", pickle_flag(is_p2p)}}));
      };
      entry(name_of(rank, own), own.launch < 0 ? state : "scheduled", true);
      if (ends)
        entry("coalesced", state, false);
    }
    if (entries.size() > most)
      entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(most));
    return pickle_file(pickle_dict({{"version", pickle_text("2.10")},
                                    {"pg_config", groups_of(rank)},
                                    {"comm_lib_version", pickle_text("2.28.9")},
                                    {"pg_status", pickle_dict({})},
                                    {"entries", pickle_list(entries)}}));
  }

 private:
  struct Issued : PlayedItem {
    std::string group{};
    /// Number of the rank's first operations whose receives must be done before this one.
    int needs = 0;
    int number = 0;  // in its channel, or among its group's collectives
    bool done = false;
  };
  using Channel = std::tuple<std::string, int, int>;  // group, sender, receiver

  std::string group_of(int rank, const PlayedItem& item) const {
    if (item.kind == PlayedItem::Kind::Collective || job_.groups != PlayedGroups::Edges)
      return "0";
    const bool sends = item.kind == PlayedItem::Kind::Send;
    return "edge " + std::to_string(sends ? rank : item.peer) + " " +
           std::to_string(sends ? item.peer : rank);
  }
  std::string groups_of(int rank) const {
    std::vector<int> world;
    for (int r = 0; r < static_cast<int>(job_.ranks.size()); ++r)
      world.push_back(r);
    std::map<std::string, std::vector<int>> groups{{"0", world}};
    for (const Issued& own : issued_[static_cast<std::size_t>(rank)])
      if (own.group != "0")
        groups[own.group] = {std::min(rank, own.peer), std::max(rank, own.peer)};
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const auto& [name, ranks] : groups) {
      std::string text;
      for (const int r : ranks)
        text += (text.empty() ? "[" : ", ") + std::to_string(r);
      pairs.push_back({name, pickle_dict({{"name", pickle_text(name)},
                                          {"desc", pickle_text("pipeline")},
                                          {"ranks", pickle_text(text + "]")}})});
    }
    return pickle_dict(pairs);
  }
  /// Ranks are those of the group.
  std::string name_of(int rank, const Issued& own) const {
    if (own.kind == PlayedItem::Kind::Collective)
      return own.name;
    const bool is_edge = own.group != "0", sends = own.kind == PlayedItem::Kind::Send;
    const int self = is_edge ? (rank > own.peer ? 1 : 0) : rank;
    const int peer = is_edge ? 1 - self : own.peer;
    return (sends ? "send " : "recv ") + std::to_string(self) + (sends ? "->" : "<-") +
           std::to_string(peer);
  }

  /// Lets the hosts continue as far as they can.
  bool issue() {
    bool moved = false;
    for (std::size_t rank = 0; rank < at_.size(); ++rank)
      while (at_[rank] < std::min(job_.ranks[rank].size(), job_.stops[rank]) && host_may(rank)) {
        const PlayedItem& item = job_.ranks[rank][at_[rank]];
        auto& own = issued_[rank];
        if (item.kind == PlayedItem::Kind::Compute) {
          needs_[static_cast<int>(rank)] = static_cast<int>(own.size());
        } else {
          Issued next{item};
          next.group = group_of(static_cast<int>(rank), item);
          next.needs = item.kind == PlayedItem::Kind::Collective ? static_cast<int>(own.size())
                                                                 : needs_[static_cast<int>(rank)];
          if (job_.groups == PlayedGroups::Batches && item.kind != PlayedItem::Kind::Collective)
            next.launch = launch_for(rank);
          if (item.kind == PlayedItem::Kind::Collective)
            next.number = collectives_[static_cast<int>(rank)]++;
          else
            next.number = channels_[{static_cast<int>(rank), item.kind,
                                     channel_of(static_cast<int>(rank), next)}]++;
          own.push_back(next);
        }
        ++at_[rank];
        moved = true;
      }
    return moved;
  }
  int launch_for(std::size_t rank) {
    const auto& items = job_.ranks[rank];
    const std::size_t at = at_[rank];
    const bool continues = at > 0 && !issued_[rank].empty() && issued_[rank].back().launch >= 0 &&
                           (items[at - 1].kind == PlayedItem::Kind::Send ||
                            items[at - 1].kind == PlayedItem::Kind::Receive);
    return continues ? issued_[rank].back().launch : launches_++;
  }
  /// Returns true if the host can continue. It waits for all operations after a step, and for
  /// receives if the job says so.
  bool host_may(std::size_t rank) const {
    const auto& own = issued_[rank];
    const PlayedItem& item = job_.ranks[rank][at_[rank]];
    if (own.empty())
      return true;
    const bool begins_step =
        own.back().kind == PlayedItem::Kind::Collective && own.back().name == "broadcast";
    const bool waits = begins_step || (job_.host_waits && item.kind == PlayedItem::Kind::Compute);
    if (!waits)
      return true;
    return std::all_of(own.begin(), own.end(), [&](const Issued& other) {
      return other.done || (!begins_step && other.kind == PlayedItem::Kind::Send);
    });
  }

  Channel channel_of(int rank, const Issued& own) const {
    const bool sends = own.kind == PlayedItem::Kind::Send;
    return {own.group, sends ? rank : own.peer, sends ? own.peer : rank};
  }
  std::string queue_of(const Issued& own) const {
    const bool is_single = own.kind != PlayedItem::Kind::Collective && own.launch < 0;
    return own.group + (is_single ? " " + std::to_string(own.peer) : "");
  }
  bool is_launch_done(int rank, std::size_t k) const {
    const auto& all = issued_[static_cast<std::size_t>(rank)];
    std::size_t end = k + 1;
    if (all[k].launch >= 0) {
      while (k > 0 && all[k - 1].launch == all[k].launch)
        --k;
      while (end < all.size() && all[end].launch == all[k].launch)
        ++end;
    }
    for (; k < end; ++k)
      if (!all[k].done)
        return false;
    return true;
  }
  /// Returns true if the operation is at the front of its queue and the data that its rank computed
  /// before have arrived.
  bool is_ready(int rank, std::size_t k) const {
    const auto& all = issued_[static_cast<std::size_t>(rank)];
    for (std::size_t before = fronts_.at(static_cast<std::size_t>(rank)); before < k; ++before) {
      const bool is_own_launch = all[k].launch >= 0 && all[before].launch == all[k].launch;
      if (is_own_launch || is_launch_done(rank, before))
        continue;
      const bool is_needed =
          static_cast<int>(before) < all[k].needs && all[before].kind == PlayedItem::Kind::Receive;
      if (is_needed || queue_of(all[before]) == queue_of(all[k]))
        return false;
    }
    return true;
  }

  Issued* other_end(int rank, const Issued& own) {
    auto& all = issued_[static_cast<std::size_t>(own.peer)];
    for (std::size_t k = 0; k < all.size(); ++k)
      if (all[k].kind == PlayedItem::Kind::Receive && all[k].number == own.number &&
          channel_of(own.peer, all[k]) == channel_of(rank, own) && !all[k].done &&
          is_ready(own.peer, k))
        return &all[k];
    return nullptr;
  }
  static bool are_alike(const Issued& a, const Issued& b) {
    return a.name == b.name && a.sizes == b.sizes && a.type == b.type;
  }

  bool complete() {
    bool moved = false;
    for (int rank = 0; rank < static_cast<int>(issued_.size()); ++rank) {
      auto& all = issued_[static_cast<std::size_t>(rank)];
      std::size_t& front = fronts_[static_cast<std::size_t>(rank)];
      while (front < all.size() && is_launch_done(rank, front))
        ++front;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].done || !is_ready(rank, k))
          continue;
        if (all[k].kind == PlayedItem::Kind::Send) {
          Issued* const other = other_end(rank, all[k]);
          if (other != nullptr && are_alike(*other, all[k]))
            moved = all[k].done = other->done = true;
        } else if (all[k].kind == PlayedItem::Kind::Collective && rank == 0) {
          moved = complete_collective(all[k]) || moved;
        }
      }
    }
    return moved;
  }
  bool complete_collective(const Issued& first) {
    std::vector<Issued*> members;
    for (int rank = 0; rank < static_cast<int>(issued_.size()); ++rank) {
      auto& all = issued_[static_cast<std::size_t>(rank)];
      for (std::size_t k = 0; k < all.size(); ++k)
        if (all[k].kind == PlayedItem::Kind::Collective && all[k].number == first.number &&
            are_alike(all[k], first) && is_ready(rank, k))
          members.push_back(&all[k]);
    }
    if (members.size() < issued_.size())
      return false;
    for (Issued* const member : members)
      member->done = true;
    return true;
  }

  const PlayedJob& job_;
  std::vector<std::size_t> at_;
  std::vector<std::vector<Issued>> issued_;
  std::vector<std::size_t> fronts_;  // everything before is done
  std::map<int, int> needs_, collectives_;
  std::map<std::tuple<int, PlayedItem::Kind, Channel>, int> channels_;
  int launches_ = 0;
};

}  // namespace pipewright::test
