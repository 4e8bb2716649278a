#include "network/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>

#include "network/cluster_links.hpp"

namespace pipewright::sim {
namespace {

using plan::Instruction;

int members_alike(const Structure& structure, const StepCosts& costs, DeviceTimes device_times) {
  if (device_times == DeviceTimes::Own)
    return 1;
  return has_factors_by_copy(structure, costs) ? costs.shards : costs.members();
}

}  // namespace

Replay::Replay(const Structure& structure, const StepCosts& costs, DeviceTimes device_times,
               LinkTimes link_times)
    : structure_(structure),
      costs_(costs),
      link_times_(link_times),
      varies_(varies_by_event(costs)),
      alike_(members_alike(structure, costs, device_times)),
      rings_(structure, costs) {
  fill(durations_, costs.stages);
  if (!costs.contended.empty())
    fill(contended_, costs.contended);
  find_collectives();
}

void Replay::fill(std::vector<Durations>& durations,
                  const std::vector<plan::StageCost>& stages) const {
  durations.resize(static_cast<std::size_t>(costs_.members() / alike_));
  for (int first = 0; first < costs_.members(); first += alike_)
    durations[static_cast<std::size_t>(first / alike_)].fill(structure_, costs_, stages, first,
                                                             alike_);
}

int Replay::device_of(int id) const {
  return costs_.device(structure_.events()[event_of(id)].rank, member_of(id));
}

const EventCost& Replay::cost_of(const std::vector<Durations>& durations, int id) const {
  return durations[static_cast<std::size_t>(member_of(id) / alike_)].of(structure_, event_of(id));
}

double Replay::factor_of(int id) const {
  return varies_ ? varied(structure_, costs_, 1, event_of(id),
                          has_factors_by_copy(structure_, costs_) ? member_of(id) : 0)
                 : 1;
}

void Replay::find_collectives() {
  std::map<std::pair<int, int>, int> found;  // by leader and group
  collective_of_.assign(static_cast<std::size_t>(last_id()), -1);
  for (int event = 0; event < structure_.size(); ++event) {
    const plan::InstructionKind kind = structure_.events()[event].instruction->kind;
    if (!plan::is_collective(kind) || structure_.events().leader_of(event) != event)
      continue;
    for (int member = 0; member < costs_.members(); ++member) {
      const int id = member * structure_.size() + event;
      const auto [known, is_new] = found.try_emplace(
          {event, member % collective_groups(costs_, kind)}, static_cast<int>(collectives_.size()));
      if (is_new)  // the first member takes the time of all
        collectives_.push_back({.leaders = {},
                                .phases = &rings_.of(event, member),
                                .priced = &rings_.of(event, member / alike_ * alike_),
                                .factor = factor_of(id),
                                .held = cost_of(durations_, id).held});
      collectives_[static_cast<std::size_t>(known->second)].leaders.push_back(id);
      collective_of_[static_cast<std::size_t>(id)] = known->second;
    }
  }
}

/// Returns the flow of a send. Without other traffic it occupies its links no longer than that of
/// the device whose times it takes.
Replay::Flow Replay::flow_of(int send) const {
  const auto& own = structure_.events()[event_of(send)];
  const Instruction& i = *own.instruction;
  const plan::Bytes size = plan::bytes_of(plan::traits_of(i.kind).payload,
                                          costs_.stages[static_cast<std::size_t>(i.stage)]);
  const int from = device_of(send);
  const int to = costs_.device(structure_.events()[own.partner].rank, member_of(send));
  const plan::Link& link = plan::link_between(costs_.cluster, from, to);
  const EventCost& most = cost_of(durations_, send);
  const double factor = factor_of(send);
  const double held = std::min(plan::occupancy(link, size).value * factor, most.held);
  return {.from = from,
          .to = to,
          .bytes = link_times_ == LinkTimes::OfCluster ? held * rate_of(link)
                                                       : static_cast<double>(size.value) * factor,
          .held = held,
          .latency = std::min(link.latency.value, most.latency)};
}

/// Visits the flows of a collective's phase. The steps of a ring pass on pieces of equal size, so
/// each member sends to the next all the time, and pays a latency per step.
template <class Visit>
void Replay::for_each_flow(const Collective& collective, std::size_t number,
                           const Visit& visit) const {
  const RingPhase& phase = (*collective.phases)[number];
  const double most = (*collective.priced)[number].seconds * collective.factor;
  for (const std::vector<int>& ring : phase.rings)
    for (std::size_t i = 0; i < ring.size() && ring.size() > 1; ++i) {
      const int from = ring[i], to = ring[(i + 1) % ring.size()];
      const plan::Link& link = plan::link_between(costs_.cluster, from, to);
      const auto devices = static_cast<double>(ring.size());
      const double steps = phase.rounds * (devices - 1);
      const plan::RingTime time = plan::ring_time(link, phase.size, devices, phase.rounds);
      const double held = std::min(time.held.value * collective.factor, most);
      const bool of_cluster = link_times_ == LinkTimes::OfCluster;
      const double own_bytes =
          steps / devices * static_cast<double>(phase.size.value) * collective.factor;
      visit(Flow{.from = from,
                 .to = to,
                 .bytes = of_cluster ? held * rate_of(link) /
                                           flows_measured(costs_.cluster, from, to, ring.size())
                                     : own_bytes,
                 .held = held,
                 .latency = std::min(time.latency.value * collective.factor, most - held),
                 .steps = steps});
    }
}

Traffic Replay::traffic() const {
  Traffic traffic;
  traffic.devices = static_cast<int>(structure_.program().ranks.size()) * costs_.members();
  const auto add = [&](const Flow& flow) {
    if (moves(flow))
      traffic.most_bytes = std::max(traffic.most_bytes, flow.bytes);
    if (moves(flow) || link_times_ == LinkTimes::OfNetwork)
      traffic.pairs.emplace(flow.from, flow.to);
  };
  for (int id = 0; id < last_id(); ++id)
    if (plan::is_send(structure_.events()[event_of(id)].instruction->kind))
      add(flow_of(id));
  for (const Collective& collective : collectives_)
    for (std::size_t phase = 0; phase < collective.phases->size(); ++phase)
      for_each_flow(collective, phase, add);
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
  late_.assign(static_cast<std::size_t>(last_id()), costs_.shards);
  for (Collective& collective : collectives_) {
    collective.missing = static_cast<int>(collective.leaders.size());
    collective.phase = 0;
    collective.start = 0;
  }
  for (int id = 0; id < last_id(); ++id)
    if (pending_[static_cast<std::size_t>(id)] == 0)
      ready_.push_back(id);
  settle_all();
  network.run();
  if (unsettled_ > 0)
    throw std::logic_error("the network stopped before the program was complete");

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
    const EventCost& cost = cost_of(durations_, id);
    finish(id, start + cost.held + cost.latency, start + cost.held);
  }
}

/// Starts compute once all tensor-parallel ranks of a replica are ready. They compute together and
/// take as long as the slowest, because their all-reduces are in the middle of it.
void Replay::begin_in_step(int id) {
  const int first = id - member_of(id) % costs_.shards * structure_.size();
  double& start = times_of(first).start;
  start = std::max(start, times_of(id).start);
  if (--late_[static_cast<std::size_t>(first)] > 0)
    return;
  const int last = first + (costs_.shards - 1) * structure_.size();
  Compute work;
  for (int own = first; own <= last; own += structure_.size()) {
    times_of(own).start = start;
    work.alone = std::max(work.alone, cost_of(durations_, own).held);
    if (!contended_.empty())
      work.contended = std::max(work.contended, cost_of(contended_, own).held);
  }
  for (int own = first; own <= last; own += structure_.size())
    begin_compute(own, work);
}

void Replay::begin_compute(int id, const Compute& work) {
  const double latency = cost_of(durations_, id).latency;
  if (contended_.empty()) {
    const double end = times_of(id).start + work.alone;
    return finish(id, end + latency, end);
  }
  network_->compute(device_of(id), work, times_of(id).start, [this, id, latency](double end) {
    finish(id, end + latency, end);
    settle_all();
  });
}

void Replay::begin_send(int id) {
  const Flow flow = flow_of(id);
  const EventCost& least = cost_of(durations_, id);
  const double start = times_of(id).start;
  const double released = start + least.held, arrived = released + least.latency;
  begin_flow(flow, start, [this, id, released, arrived](double sent, double all) {
    finish(id, std::max(sent, released), std::max(all, arrived));
  });
}

/// Returns true if the flow takes time: over links of unlimited bandwidth none does.
bool Replay::moves(const Flow& flow) { return flow.bytes > 0 && std::isfinite(flow.bytes); }

/// Starts a flow. Calls `done` with the times at which it has left the links and has arrived.
template <class Done>
void Replay::begin_flow(const Flow& flow, double start, const Done& done) {
  const double latency = flow.latency + flow.steps * network_->latency(flow.from, flow.to);
  if (!moves(flow))
    return done(start + flow.held, start + flow.held + latency);
  network_->send(flow.from, flow.to, flow.bytes, start, [this, done, latency](double sent) {
    done(sent, sent + latency);
    settle_all();
  });
}

/// Lets a leader join a collective, whose rings start once all have joined.
void Replay::join(Collective& collective, int id) {
  collective.start = std::max(collective.start, times_of(id).start);
  if (--collective.missing > 0)
    return;
  collective.end = collective.start;
  begin_phase(collective);
}

void Replay::begin_phase(Collective& collective) {
  if (collective.phase == collective.phases->size()) {
    const double end = std::max(collective.end, collective.start + collective.held);
    for (const int leader : collective.leaders) {
      times_of(leader).start = collective.start;
      finish(leader, end, end);
    }
    return;
  }
  const double start = collective.end;
  collective.end += (*collective.priced)[collective.phase].seconds * collective.factor;
  collective.flowing = 1;  // keeps the phase open while its flows begin
  const auto end_flow = [this, &collective] {
    if (--collective.flowing == 0) {
      ++collective.phase;
      begin_phase(collective);
    }
  };
  for_each_flow(collective, collective.phase, [&](const Flow& flow) {
    ++collective.flowing;
    begin_flow(flow, start, [&collective, end_flow](double, double arrived) {
      collective.end = std::max(collective.end, arrived);
      end_flow();
    });
  });
  end_flow();
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
