#include "pipewright/sim/structure/durations.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/costs/pair_times.hpp"
#include "pipewright/plan/error.hpp"
#include "uniform.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;
using plan::Instruction;
using plan::Link;
using plan::Seconds;

/// The devices of a rank that are priced: all of them, of which the slowest counts, or one.
struct Members {
  int first = 0, end = 0;
};

/// Returns the link on which a transfer takes longest, among those that join two ranks in each of
/// the data-parallel pipelines.
const Link& slowest_link(const StepCosts& costs, const Members& members, int rank, int other,
                         Bytes size) {
  const auto between = [&](int member) -> const Link& {
    return plan::link_between(costs.cluster, costs.device(rank, member),
                              costs.device(other, member));
  };
  const Link* slowest = &between(members.first);
  for (int member = members.first + 1; member < members.end; ++member) {
    const Link& link = between(member);
    if (occupancy(link, size) + link.latency > occupancy(*slowest, size) + slowest->latency)
      slowest = &link;
  }
  return *slowest;
}

/// Returns the levels that join these members of two ranks, each once.
std::vector<std::size_t> levels_between(const StepCosts& costs, const Members& members, int rank,
                                        int other) {
  std::vector<std::size_t> levels;
  for (int member = members.first; member < members.end; ++member) {
    const std::size_t level =
        plan::level_between(costs.cluster, costs.device(rank, member), costs.device(other, member));
    if (std::find(levels.begin(), levels.end(), level) == levels.end())
      levels.push_back(level);
  }
  return levels;
}

/// Like slowest_link, for levels in the order of their first members.
const Link& slowest_of(const plan::Cluster& cluster, const std::vector<std::size_t>& levels,
                       Bytes size) {
  const Link* slowest = nullptr;
  for (const std::size_t level : levels) {
    const Link& link = plan::link_of_level(cluster, level);
    if (slowest == nullptr ||
        occupancy(link, size) + link.latency > occupancy(*slowest, size) + slowest->latency)
      slowest = &link;
  }
  return *slowest;
}

/// From this number of members on, caching the levels that join them pays off.
constexpr int many_members = 64;

/// Returns the lowest speed of these members.
double speed_of(const StepCosts& costs, const Members& members, int rank) {
  const std::vector<double>& speeds = costs.cluster.rank_speeds;
  const double own = speeds.empty() ? 1 : speeds[static_cast<std::size_t>(rank)];
  if (!costs.cluster.mixture)
    return own;
  double least = plan::kind_speed(costs.cluster, costs.device(rank, members.first));
  for (int member = members.first + 1; member < members.end; ++member)
    least = std::min(least, plan::kind_speed(costs.cluster, costs.device(rank, member)));
  return own * least;
}

Seconds hidden_in_pair(const Structure& structure, const StepCosts& costs,
                       const std::vector<plan::StageCost>& stages, int event) {
  const int other = structure.pair_of(event);
  if (other < 0)
    return {};
  const Instruction &own = *structure.events()[event].instruction,
                    &beside = *structure.events()[other].instruction;
  return plan::overlapped_communication(
      plan::traits_of(own.kind).work, stages[static_cast<std::size_t>(own.stage)],
      plan::traits_of(beside.kind).work, stages[static_cast<std::size_t>(beside.stage)],
      costs.pair_overlap);
}

bool has_overheads(const plan::Link& link) { return link.overheads != plan::Overheads{}; }

/// Some members of each of some ranks: `of_rank` of them, every `step`-th, starting at `first`.
class Devices {
 public:
  Devices(const StepCosts& costs, const std::vector<int>& ranks, int first, int step, int of_rank)
      : costs_(costs), ranks_(ranks), first_(first), step_(step), of_rank_(of_rank) {}

  std::size_t size() const { return ranks_.size() * static_cast<std::size_t>(of_rank_); }
  int operator[](std::size_t at) const {
    const auto of_rank = static_cast<std::size_t>(of_rank_);
    return costs_.device(ranks_[at / of_rank], first_ + static_cast<int>(at % of_rank) * step_);
  }
  bool are_in_order() const {
    for (std::size_t at = 1; at < size(); ++at)
      if ((*this)[at] < (*this)[at - 1])
        return false;
    return true;
  }
  /// Returns the devices in their order on the cluster.
  std::vector<int> list() const {
    std::vector<int> devices;
    for (std::size_t at = 0; at < size(); ++at)
      devices.push_back((*this)[at]);
    std::sort(devices.begin(), devices.end());
    return devices;
  }

 private:
  const StepCosts& costs_;
  const std::vector<int>& ranks_;
  const int first_, step_, of_rank_;
};

template <class List, class Of>
double ring_along(const plan::Cluster& cluster, const List& devices, Bytes size, int rounds,
                  const Of& of) {
  const std::size_t count = devices.size();
  double most = 0;
  for (std::size_t i = 0; i < count && count > 1; ++i)
    most = std::max(most, of(plan::link_between(cluster, devices[i], devices[(i + 1) % count]),
                             size, static_cast<double>(count), rounds));
  return most;
}

/// Returns the largest `of(link, size, n, rounds)` over the links of a ring. n devices pass pieces
/// of `size` bytes around the ring, in `rounds` times n - 1 steps of size/n bytes: an all-reduce
/// takes two rounds, a reduce-scatter or an all-gather one (Patarasuk and Yuan, J. Parallel
/// Distrib. Comput. 69, 2009). Neighbors in the ring are neighbors on the cluster.
template <class Of>
double ring(const plan::Cluster& cluster, const Devices& devices, Bytes size, int rounds,
            const Of& of) {
  return devices.are_in_order() ? ring_along(cluster, devices, size, rounds, of)
                                : ring_along(cluster, devices.list(), size, rounds, of);
}

double ring_seconds(const Link& link, Bytes size, double devices, int rounds) {
  const plan::RingTime time = plan::ring_time(link, size, devices, rounds);
  return time.held.value + time.latency.value;
}

double ring_overhead(const Link& link, Bytes size, double devices, int rounds) {
  return plan::ring_overhead(link, size, devices, rounds).value;
}

/// The seconds for which a transfer keeps its ranks from computing, and a collective each of its
/// members.
struct Kept {
  double sender = 0, receiver = 0, member = 0;
};

/// Prices an event for a microbatch of length 1, without jitter.
class Pricing {
 public:
  Pricing(const Structure& structure, const StepCosts& costs,
          const std::vector<plan::StageCost>& stages, Members members)
      : structure_(structure), costs_(costs), stages_(stages), members_(members) {}

  EventCost of(int event) const {
    const auto& own = structure_.events()[event];
    const Instruction& i = *own.instruction;
    if (plan::is_receive(i.kind))
      return {};
    if (plan::is_send(i.kind)) {
      const Link& link = link_of(event);
      return {plan::occupancy(link, sent_by(event)).value, link.latency.value};
    }
    if (plan::is_collective(i.kind))
      return {structure_.events().leader_of(event) == event ? sum_seconds(i) : 0, 0};
    Seconds time = compute(i) - hidden_in_pair(structure_, costs_, stages_, event);
    if (plan::makes_input_gradient(i.kind) && structure_.recomputes(event))
      time += stage(i).rerun.others;
    return {time.value / speed(own.rank), 0};
  }

  std::vector<RingPhase> phases_of(const Instruction& i) const {
    std::vector<RingPhase> phases;
    collective_of(i, [&](const Devices& devices, Bytes size, int rounds) {
      phases.push_back({{devices.list()}, size, rounds, along_ring(devices, size, rounds)});
      return 0.0;
    });
    // After the all-reduce over all replicas, each expert-parallel group of replicas has its own
    // ring.
    if (phases.size() > 1)
      for (int copy = 1; copy < costs_.expert; ++copy)
        phases.back().rings.push_back(
            copies(structure_.ranks_of(i.stage), costs_.expert, copy).list());
    return phases;
  }

  Kept kept_by(int event) const {
    const Instruction& i = *structure_.events()[event].instruction;
    if (plan::is_collective(i.kind))
      return {.member = collective(i, ring_overhead)};
    if (!plan::is_send(i.kind))
      return {};
    const plan::Overheads& overheads = link_of(event).overheads;
    const Bytes size = sent_by(event);
    return {.sender = plan::time_of(overheads.send, size).value,
            .receiver = plan::time_of(overheads.receive, size).value};
  }

 private:
  Bytes sent_by(int send) const {
    const Instruction& i = *structure_.events()[send].instruction;
    return plan::bytes_of(plan::traits_of(i.kind).payload, stage(i));
  }
  const Link& link_of(int send) const {
    const auto& own = structure_.events()[send];
    const int rank = own.rank, other = structure_.events()[own.partner].rank;
    if (members_.end - members_.first < many_members)
      return slowest_link(costs_, members_, rank, other, sent_by(send));
    const auto [known, is_new] = levels_.try_emplace({rank, other});
    if (is_new)
      known->second = levels_between(costs_, members_, rank, other);
    return slowest_of(costs_.cluster, known->second, sent_by(send));
  }
  double speed(int rank) const {
    if (!costs_.cluster.mixture)
      return speed_of(costs_, members_, rank);
    const auto [known, is_new] = speeds_.try_emplace(rank);
    if (is_new)
      known->second = speed_of(costs_, members_, rank);
    return known->second;
  }
  const plan::StageCost& stage(const Instruction& i) const {
    return stages_[static_cast<std::size_t>(i.stage)];
  }

  Seconds compute(const Instruction& i) const {
    return plan::time_of(plan::traits_of(i.kind).work, stage(i));
  }

  double sum_seconds(const Instruction& i) const {
    if (!costs_.measured)
      return collective(i, ring_seconds);
    return collective_of(i, [&](const Devices& devices, Bytes size, int rounds) {
      if (size == Bytes{})  // scalars: included in what a machine takes once per step
        return 0.0;
      const plan::SumTime sum =
          plan::sum_time(*costs_.measured, plan::place_of(*costs_.measured, devices.list()),
                         static_cast<double>(size.value));
      return plan::gradient_sum_s(sum, costs_.measured->machine->constants) * rounds / 2;
    });
  }

  template <class Of>
  double collective(const Instruction& i, const Of& of) const {
    return collective_of(i, [&](const Devices& devices, Bytes size, int rounds) {
      return ring(costs_.cluster, devices, size, rounds, of);
    });
  }

  /// Returns the total of `of(devices, size, rounds)` over the rings of a collective. If replicas
  /// partition the experts, the gradients of the experts are summed separately, over fewer
  /// replicas.
  template <class Of>
  double collective_of(const Instruction& i, const Of& of) const {
    const plan::InstructionTraits& traits = plan::traits_of(i.kind);
    const Bytes size = plan::bytes_of(traits.payload, stage(i));
    switch (traits.group) {
      case plan::Group::Copies: {
        const Bytes experts = costs_.expert > 1 ? stage(i).expert_parameters : Bytes{};
        const std::vector<int>& ranks = structure_.ranks_of(i.stage);
        double seconds = of(copies(ranks, 1), size - experts, traits.rounds);
        if (experts > Bytes{})
          seconds += of(copies(ranks, costs_.expert), experts, traits.rounds);
        return seconds;
      }
      case plan::Group::Tied:  // in each data-parallel pipeline
        return of(Devices(costs_, structure_.tied_ranks(), members_.first, 1, 1), size,
                  traits.rounds);
      case plan::Group::All:
        return of(Devices(costs_, structure_.all_ranks(), 0, 1, costs_.members()), size,
                  traits.rounds);
      case plan::Group::None:
        return 0;
    }
    return 0;
  }

  /// Returns one tensor-parallel rank of every `step`-th replica, starting at replica `copy`.
  Devices copies(const std::vector<int>& ranks, int step, int copy = 0) const {
    return {costs_, ranks, copy * costs_.shards + members_.first % costs_.shards,
            step * costs_.shards, costs_.replicas / step};
  }
  double along_ring(const Devices& devices, Bytes size, int rounds) const {
    return ring(costs_.cluster, devices, size, rounds, ring_seconds);
  }

  const Structure& structure_;
  const StepCosts& costs_;
  const std::vector<plan::StageCost>& stages_;
  const Members members_;
  // Caches of values that many events of a rank need.
  mutable std::map<std::pair<int, int>, std::vector<std::size_t>> levels_;
  mutable std::map<int, double> speeds_;
};

/// Returns the number of an event's random sample: its own, but shared by all members of a
/// collective.
std::uint64_t draw_of(const Structure& structure, int event, int member) {
  const Instruction& i = *structure.events()[event].instruction;
  const auto size = static_cast<std::uint64_t>(structure.size());
  const std::uint64_t first = 2 * size * static_cast<std::uint64_t>(member);
  if (!plan::is_collective(i.kind))
    return first + static_cast<std::uint64_t>(event);
  return first + size + static_cast<std::uint64_t>(structure.events().leader_of(event));
}

/// Returns a log-normal factor of mean 1 (Box and Muller, Ann. Math. Stat. 29, 1958).
double jitter_factor(double deviation, std::uint64_t seed, std::uint64_t draw) {
  const double variance = std::log1p(deviation * deviation);  // of the logarithm
  const std::uint64_t number = 2 * draw;
  const double normal = std::sqrt(-2 * std::log(uniform(seed, number))) *
                        std::cos(2 * std::numbers::pi * uniform(seed, number + 1));
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace

bool with_overheads(const Structure& structure, const StepCosts& costs) {
  if (structure.program().blocking)
    return false;
  for (std::size_t level = 0; level < level_count(costs.cluster); ++level)
    if (has_overheads(link_of_level(costs.cluster, level)))
      return true;
  return false;
}

bool has_factors_by_copy(const Structure& structure, const StepCosts& costs) {
  return costs.event_factors.size() > static_cast<std::size_t>(structure.size());
}

Seconds hidden_in_pair(const Structure& structure, const StepCosts& costs, int event) {
  return hidden_in_pair(structure, costs, costs.stages, event);
}

bool varies_by_event(const StepCosts& costs) {
  return costs.jitter > 0 || !costs.microbatch_lengths.empty() || !costs.event_factors.empty();
}

double varied(const Structure& structure, const StepCosts& costs, double held, int event,
              int member) {
  // Collectives of gradients and parameters have the same size for a short microbatch.
  const Instruction& i = *structure.events()[event].instruction;
  const int microbatch = plan::is_collective(i.kind) ? -1 : i.microbatch;
  if (microbatch >= 0 && !costs.microbatch_lengths.empty())
    held *= costs.microbatch_lengths[static_cast<std::size_t>(microbatch)];
  if (costs.jitter > 0 && held > 0)
    held *= jitter_factor(costs.jitter, costs.seed, draw_of(structure, event, member));
  if (costs.event_factors.empty())
    return held;
  const int copy = has_factors_by_copy(structure, costs) ? member / costs.shards : 0;
  const auto size = static_cast<std::size_t>(structure.size());
  return held * costs.event_factors[static_cast<std::size_t>(copy) * size +
                                    static_cast<std::size_t>(event)];
}

int collective_groups(const StepCosts& costs, plan::InstructionKind kind) {
  switch (plan::group_of(kind)) {
    case plan::Group::Copies:
      return costs.shards;
    case plan::Group::All:
      return 1;
    case plan::Group::Tied:
    case plan::Group::None:
      return costs.members();
  }
  return 1;
}

std::vector<RingPhase> ring_phases(const Structure& structure, const StepCosts& costs, int leader,
                                   int member) {
  if (costs.measured)
    return {};
  return Pricing(structure, costs, costs.stages, {member, member + 1})
      .phases_of(*structure.events()[leader].instruction);
}

EventCost cost_of_member(const Structure& structure, const StepCosts& costs, int event,
                         int member) {
  return Pricing(structure, costs, costs.stages, {member, member + 1}).of(event);
}

double slowest_speed(const StepCosts& costs, int rank) {
  return speed_of(costs, {0, costs.members()}, rank);
}

void Durations::fill(const Structure& structure, const StepCosts& costs,
                     const std::vector<plan::StageCost>& stages) {
  fill(structure, costs, stages, {.first = 0, .end = costs.members(), .varied = 0});
}

void Durations::fill(const Structure& structure, const StepCosts& costs,
                     const std::vector<plan::StageCost>& stages, int first, int count) {
  fill(structure, costs, stages,
       {.first = first,
        .end = first + count,
        .varied = has_factors_by_copy(structure, costs) ? first : 0});
}

void Durations::fill(const Structure& structure, const StepCosts& costs,
                     const std::vector<plan::StageCost>& stages, const Whose& whose) {
  const Pricing pricing(structure, costs, stages, {whose.first, whose.end});
  const auto& representatives = structure.representatives();
  const bool kept = with_overheads(structure, costs);
  by_event_ = kept || varies_by_event(costs);
  by_class_.resize(representatives.size());
  for (std::size_t c = 0; c < representatives.size(); ++c)
    by_class_[c] = pricing.of(representatives[c]);
  if (!by_event_)
    return;
  by_event_costs_.resize(static_cast<std::size_t>(structure.size()));
  for (int event = 0; event < structure.size(); ++event) {
    EventCost cost = by_class_[static_cast<std::size_t>(structure.class_of(event))];
    cost.held = varied(structure, costs, cost.held, event, whose.varied);
    by_event_costs_[static_cast<std::size_t>(event)] = cost;
  }
  if (kept)
    add_overheads(structure, costs, stages, whose);
}

/// Adds the overheads. A send keeps its rank busy after the compute that precedes it, a receive
/// after the compute that uses its data. A collective overlaps with the compute after it, which
/// takes that much longer. While a rank waits for communication there is no overhead: the time of a
/// transfer or a collective already includes it.
void Durations::add_overheads(const Structure& structure, const StepCosts& costs,
                              const std::vector<plan::StageCost>& stages, const Whose& whose) {
  const Pricing pricing(structure, costs, stages, {whose.first, whose.end});
  std::vector<Kept> by_class;
  for (const int event : structure.representatives())
    by_class.push_back(pricing.kept_by(event));
  const auto kept_by = [&](int event) -> const Kept& {
    return by_class[static_cast<std::size_t>(structure.class_of(event))];
  };
  const plan::Dependencies& events = structure.events();
  const auto keep = [&](int event, double seconds) {
    if (event >= 0 && plan::is_compute(events[event].instruction->kind))
      by_event_costs_[static_cast<std::size_t>(event)].latency += seconds;
  };
  double beside = 0;  // by collectives since the rank's previous compute
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = events[event];
    const plan::InstructionTraits& kind = plan::traits_of(own.instruction->kind);
    if (event > 0 && events[event - 1].rank != own.rank)
      beside = 0;
    if (kind.role == plan::Role::Send)
      keep(own.compute, kept_by(event).sender);
    else if (own.data >= 0 && plan::is_receive(events[own.data].instruction->kind))
      keep(event, kept_by(events[own.data].data).receiver);
    beside += kept_by(event).member;
    if (kind.role != plan::Role::Compute)
      continue;
    if (!kind.waits_for_collectives)
      by_event_costs_[static_cast<std::size_t>(event)].held += beside;
    beside = 0;
  }
}

}  // namespace pipewright::sim
