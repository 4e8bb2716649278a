#include "network/replay.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>

namespace pipewright::sim {

using plan::Instruction;

StepCosts on_links_of(double bandwidth_per_s, StepCosts costs) {
  for (plan::Link* const link : plan::links_of(costs.cluster))
    *link = {.latency = {}, .bandwidth_per_s = bandwidth_per_s, .overheads = link->overheads};
  costs.measured.reset();
  return costs;
}

namespace {

CopyWorks works_by(const Structure& structure, const StepCosts& costs,
                   const std::vector<plan::StageCost>& stages) {
  const StepCosts in_bytes = on_links_of(1, costs);
  const bool differ = has_factors_by_copy(structure, costs) || costs.cluster.mixture;
  CopyWorks works(differ ? static_cast<std::size_t>(costs.replicas) : 1);
  for (std::size_t copy = 0; copy < works.size(); ++copy)
    works[copy].fill_copy(structure, in_bytes, stages, static_cast<int>(copy));
  return works;
}

}  // namespace

CopyWorks works_of(const Structure& structure, const StepCosts& costs) {
  return works_by(structure, costs, costs.stages);
}

CopyWorks contended_works_of(const Structure& structure, const StepCosts& costs) {
  return works_by(structure, costs, costs.contended);
}

Replay::Replay(const Structure& structure, const CopyWorks& works, const StepCosts& costs,
               const CopyWorks* contended)
    : structure_(structure), works_(works), contended_(contended), costs_(costs) {
  find_collectives();
}

int Replay::device_of(int id) const {
  return costs_.device(structure_.events()[event_of(id)].rank, member_of(id));
}

int Replay::receiving_device(int id) const {
  const auto& events = structure_.events();
  return costs_.device(events[events[event_of(id)].partner].rank, member_of(id));
}

/// A copy has `shards` members.
const EventCost& Replay::cost_of(const CopyWorks& works, int id) const {
  const std::size_t copy =
      works.size() == 1 ? 0 : static_cast<std::size_t>(member_of(id) / costs_.shards);
  return works[copy].of(structure_, event_of(id));
}

/// Which of the groups of a collective a member is in: copies of one shard sum, tied weights are
/// summed in each pipeline, and all is one.
int Replay::group_of(plan::InstructionKind kind, int member) const {
  switch (plan::group_of(kind)) {
    case plan::Group::Copies:
      return member % costs_.shards;
    case plan::Group::Tied:
      return member;
    case plan::Group::All:
    case plan::Group::None:
      return 0;
  }
  return 0;
}

/// Sums of one device alone take nothing, and are none.
void Replay::find_collectives() {
  using Key = std::pair<int, int>;  // the event that stands for all, and which of equal groups
  std::map<Key, Collective> found;
  const auto& events = structure_.events();
  for (int event = 0; event < structure_.size(); ++event) {
    const Instruction& i = *events[event].instruction;
    if (!plan::is_collective(i.kind))
      continue;
    const int leader = events.leader_of(event);
    for (int member = 0; member < costs_.members(); ++member) {
      const int id = member * structure_.size() + event;
      Collective& collective = found[Key{leader, group_of(i.kind, member)}];
      collective.rounds = plan::traits_of(i.kind).rounds;
      if (collective.ring.empty())  // the first takes the time of all
        collective.work = work_of(id - event + leader);
      if (event == leader)
        collective.leaders.push_back(id);
      collective.ring.push_back(id);
    }
  }
  collective_of_.assign(static_cast<std::size_t>(last_id()), -1);
  for (auto& [key, collective] : found) {
    if (collective.ring.size() < 2)
      continue;
    // Neighbours of the ring are neighbouring devices.
    std::sort(collective.ring.begin(), collective.ring.end(),
              [&](int a, int b) { return device_of(a) < device_of(b); });
    for (const int id : collective.leaders)
      collective_of_[static_cast<std::size_t>(id)] = static_cast<int>(collectives_.size());
    collectives_.push_back(std::move(collective));
  }
}

template <class Visit>
void Replay::for_each_flow(const Collective& collective, const Visit& visit) const {
  const std::vector<int>& ring = collective.ring;
  for (std::size_t i = 0; i < ring.size(); ++i)
    visit(device_of(ring[i]), device_of(ring[(i + 1) % ring.size()]), collective.work);
}

Traffic Replay::traffic() const {
  Traffic traffic;
  traffic.devices = static_cast<int>(structure_.program().ranks.size()) * costs_.members();
  const auto add = [&](int from, int to, double bytes) {
    traffic.pairs.emplace(from, to);
    traffic.most_bytes = std::max(traffic.most_bytes, bytes);
  };
  for (int id = 0; id < last_id(); ++id)
    if (plan::is_send(structure_.events()[event_of(id)].instruction->kind))
      add(device_of(id), receiving_device(id), work_of(id));
  for (const Collective& collective : collectives_)
    for_each_flow(collective, add);
  return traffic;
}

Times Replay::run(Network& network) {
  network_ = &network;
  unsettled_ = last_id();
  times_.assign(static_cast<std::size_t>(last_id()), {});
  pending_.clear();
  for (int member = 0; member < costs_.members(); ++member)
    pending_.insert(pending_.end(), structure_.events().predecessor_counts().begin(),
                    structure_.events().predecessor_counts().end());
  late_.assign(static_cast<std::size_t>(costs_.shards > 1 ? last_id() : 0), costs_.shards);
  for (Collective& collective : collectives_) {
    collective.missing = static_cast<int>(collective.leaders.size());
    collective.flowing = static_cast<int>(collective.ring.size());
  }
  for (int id = 0; id < last_id(); ++id)
    if (pending_[static_cast<std::size_t>(id)] == 0)
      ready_.push_back(id);
  settle_all();
  network.run();
  if (unsettled_ > 0)
    throw std::logic_error("the network came to an end before the program did");

  Times answer;
  for (const EventTimes& event : times_)
    answer.iteration = std::max(answer.iteration, event.end);
  answer.events.assign(times_.begin(), times_.begin() + structure_.size());
  structure_.begin_together(answer);
  return answer;
}

void Replay::settle_all() {
  while (!ready_.empty()) {
    const int id = ready_.back();
    ready_.pop_back();
    begin(id);
  }
}

void Replay::begin(int id) {
  const auto& own = structure_.events()[event_of(id)];
  const double start = times_of(id).start;
  const int collective = collective_of_[static_cast<std::size_t>(id)];
  if (plan::is_send(own.instruction->kind)) {
    begin_send(id);
  } else if (plan::is_receive(own.instruction->kind)) {
    const EventTimes& send = times_of(id - event_of(id) + own.partner);
    finish(id, std::max(start, send.released), std::max(start, send.end));
  } else if (collective >= 0) {
    join(collectives_[static_cast<std::size_t>(collective)], id);
  } else if (plan::is_compute(own.instruction->kind)) {
    begin_in_step(id);
  } else {
    const EventCost& cost = cost_of(works_, id);
    finish(id, start + cost.held + cost.latency, start + cost.held);
  }
}

/// The shards of a copy compute together, once the last of them can: their sums are in the middle
/// of it.
void Replay::begin_in_step(int id) {
  if (costs_.shards == 1)
    return begin_compute(id);
  const int first = id - member_of(id) % costs_.shards * structure_.size();
  times_of(first).start = std::max(times_of(first).start, times_of(id).start);
  if (--late_[static_cast<std::size_t>(first)] > 0)
    return;
  const double start = times_of(first).start;
  for (int shard = 0; shard < costs_.shards; ++shard) {
    const int own = first + shard * structure_.size();
    times_of(own).start = start;
    begin_compute(own);
  }
}

void Replay::begin_compute(int id) {
  const EventCost& cost = cost_of(works_, id);
  if (contended_ == nullptr) {
    const double end = times_of(id).start + cost.held;
    return finish(id, end + cost.latency, end);
  }
  const Compute work{cost.held, cost_of(*contended_, id).held};
  network_->compute(device_of(id), work, times_of(id).start,
                    [this, id, latency = cost.latency](double end) {
                      finish(id, end + latency, end);
                      settle_all();
                    });
}

void Replay::begin_send(int id) {
  const double start = times_of(id).start;
  const int from = device_of(id), to = receiving_device(id);
  const double latency = network_->latency(from, to);
  if (work_of(id) == 0 || network_->is_instant(from, to))
    return finish(id, start, start + latency);
  const double bytes = network_->moved(from, to, work_of(id));
  if (bytes == 0)
    return finish(id, start, start + latency);
  network_->send(from, to, bytes, start, [this, id, latency](double released) {
    finish(id, released, released + latency);
    settle_all();
  });
}

/// The ring turns once everybody is there. Its steps, n - 1 per round, pass on pieces of equal
/// size, so each member sends to the next all the time, and pays a latency per step.
void Replay::join(Collective& collective, int id) {
  collective.start = std::max(collective.start, times_of(id).start);
  if (--collective.missing > 0)
    return;
  const double steps = collective.rounds * (static_cast<double>(collective.ring.size()) - 1);
  const auto devices = static_cast<int>(collective.ring.size());
  for_each_flow(collective, [&](int from, int to, double work) {
    const double latency = steps * network_->ring_latency(from, to);
    if (work == 0 || network_->is_instant(from, to))
      return end_flow(collective, collective.start + latency);
    const double bytes = network_->ring_moved(from, to, work, devices, collective.rounds);
    if (bytes == 0)
      return end_flow(collective, collective.start + latency);
    network_->send(from, to, bytes, collective.start, [this, &collective, latency](double sent) {
      end_flow(collective, sent + latency);
      settle_all();
    });
  });
}

void Replay::end_flow(Collective& collective, double end) {
  collective.end = std::max(collective.end, end);
  if (--collective.flowing > 0)
    return;
  for (const int leader : collective.leaders) {
    times_of(leader).start = collective.start;
    finish(leader, collective.end, collective.end);
  }
}

void Replay::finish(int id, double released, double end) {
  const auto& events = structure_.events();
  const int event = event_of(id);
  times_of(id).released = released;
  times_of(id).end = end;
  --unsettled_;
  for (const auto* edge = events.begin(event); edge != events.end(event); ++edge) {
    const auto next = static_cast<std::size_t>(std::int64_t{id} - event + edge->event);
    // A receive is posted whether or not its data is there yet; `begin` adds the arrival.
    const bool arrives = plan::is_receive(events[edge->event].instruction->kind) &&
                         events[edge->event].partner == event;
    if (!arrives)
      times_[next].start =
          std::max(times_[next].start, edge->until == plan::Until::Done ? end : released);
    if (--pending_[next] == 0)
      ready_.push_back(static_cast<int>(next));
  }
}

}  // namespace pipewright::sim
