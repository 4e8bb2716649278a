#include "pipewright/sim/engine/job_simulator.hpp"

#include <algorithm>
#include <array>

#include "engine/all_cores.hpp"
#include "pipewright/plan/error.hpp"
#include "structure/event_start.hpp"

namespace pipewright::sim {
namespace {

/// Members whose times of an event are adjacent: few enough that the events that wait for it find
/// them in the core's cache.
constexpr int least_width = 32;

/// The times of one member, by event.
struct OfMember {
  const EventTimes* first;
  std::size_t width;
  const EventTimes& operator[](int event) const {
    return first[static_cast<std::size_t>(event) * width];
  }
};

/// Returns true if members of several replicas meet in the event; the leader takes the time of all.
bool joins_copies(const Structure& structure, int event) {
  const plan::Group group = plan::group_of(structure.events()[event].instruction->kind);
  return (group == plan::Group::Copies || group == plan::Group::All) &&
         structure.events().leader_of(event) == event;
}

}  // namespace

JobSimulator::JobSimulator(const Structure& structure) : structure_(structure) { find_stretches(); }

void JobSimulator::find_stretches() {
  Stretch open;
  for (const TimedEvent& event : structure_.timed_events()) {
    if (joins_copies(structure_, event.event)) {
      stretches_.push_back(open);
      open.begin = ++open.end;
    } else {
      ++open.end;
    }
  }
  stretches_.push_back(open);
}

std::string JobSimulator::obstacle(const Structure& structure, const StepCosts& costs) {
  if (plan::shares_links(costs.cluster))
    return "transfers share links of the cluster";
  if (!costs.contended.empty())
    return "ranks of a node slow each other down";
  if (with_overheads(structure, costs))
    return "transfers keep ranks from computing";
  return {};
}

const JobTimes& JobSimulator::run(const StepCosts& costs) {
  require_usable(costs, structure_.program());
  if (const std::string why = obstacle(structure_, costs); !why.empty())
    throw plan::InputError("devices cannot be simulated individually: " + why);
  const int copies = (least_width + costs.shards - 1) / costs.shards;
  times_.width_ = static_cast<std::size_t>(std::min(copies, costs.replicas) * costs.shards);
  times_.members_ = costs.members();
  times_.events_ = static_cast<std::size_t>(structure_.size());
  blocks_ = times_.block_of(costs.members() - 1) + 1;
  times_.times_.resize(blocks_ * times_.block_size());
  varies_ = varies_by_event(costs);
  price(costs);
  for (const Stretch& stretch : stretches_) {
    if (stretch.begin < stretch.end)
      on_all_cores(blocks_, [&](const auto& next) {
        for (auto block = next(); block; block = next())
          time_block(costs, stretch, *block);
      });
    if (stretch.end < structure_.timed_events().size())
      meet(costs, structure_.timed_events()[stretch.end]);
  }
  finish();
  return times_;
}

void JobSimulator::price(const StepCosts& costs) {
  const auto& representatives = structure_.representatives();
  const auto members = static_cast<std::size_t>(costs.members());
  costs_.resize(representatives.size() * members);
  on_all_cores(representatives.size(), [&](const auto& next) {
    for (auto at = next(); at; at = next()) {
      EventCost* const own = costs_.data() + *at * members;
      const int groups =
          collective_groups(costs, structure_.events()[representatives[*at]].instruction->kind);
      for (int member = 0; member < costs.members(); ++member)
        own[member] = member >= groups
                          ? own[member % groups]
                          : cost_of_member(structure_, costs, representatives[*at], member);
    }
  });
}

int JobSimulator::members_in(std::size_t block) const {
  const auto first = static_cast<int>(block * times_.width_);
  return std::min(static_cast<int>(times_.width_), times_.members_ - first);
}

double JobSimulator::held(const StepCosts& costs, const TimedEvent& event, int member) const {
  const double held = cost(event.cost_class, member).held;
  return varies_ ? varied(structure_, costs, held, event.event, member) : held;
}

void JobSimulator::time_block(const StepCosts& costs, const Stretch& stretch, std::size_t number) {
  const auto first = static_cast<int>(number * times_.width_);
  const int count = members_in(number);
  EventTimes* const times = block(number);
  std::vector<double> starts(times_.width_);
  for (std::size_t at = stretch.begin; at < stretch.end; ++at) {
    const TimedEvent& event = structure_.timed_events()[at];
    EventTimes* const own = times + static_cast<std::size_t>(event.event) * times_.width_;
    for (int lane = 0; lane < count; ++lane)
      starts[static_cast<std::size_t>(lane)] =
          sim::start_of(structure_, event, OfMember{times + lane, times_.width_});
    if (plan::is_compute(structure_.events()[event.event].instruction->kind)) {
      time_compute(costs, event, first, own, starts.data());
      continue;
    }
    for (int lane = 0; lane < count; ++lane) {
      const double start = starts[static_cast<std::size_t>(lane)];
      if (event.kind == TimedEvent::Kind::Receive)
        own[lane] = times_of_receive(start, OfMember{times + lane, times_.width_}[event.data]);
      else
        own[lane] = times_of(start, {held(costs, event, first + lane),
                                     cost(event.cost_class, first + lane).latency});
    }
  }
}

/// Times compute replica by replica.
void JobSimulator::time_compute(const StepCosts& costs, const TimedEvent& event, int first,
                                EventTimes* own, const double* starts) const {
  const int count = members_in(times_.block_of(first));
  for (int copy = 0; copy < count; copy += costs.shards) {
    double start = 0, longest = 0;
    for (int lane = copy; lane < copy + costs.shards; ++lane) {
      start = std::max(start, starts[lane]);
      longest = std::max(longest, held(costs, event, first + lane));
    }
    std::fill_n(own + copy, costs.shards, times_of_compute(start, {longest, 0}));
  }
}

double JobSimulator::start_of_member(const TimedEvent& event, int member) {
  const EventTimes* const first =
      block(times_.block_of(member)) + static_cast<std::size_t>(member) % times_.width_;
  return sim::start_of(structure_, event, OfMember{first, times_.width_});
}

/// Times a collective of the replicas of a tensor-parallel rank, or of all members: they begin with
/// the last, and take the time of the first.
void JobSimulator::meet(const StepCosts& costs, const TimedEvent& event) {
  std::vector<double> starts(static_cast<std::size_t>(costs.shards), 0);
  const int groups = collective_groups(costs, structure_.events()[event.event].instruction->kind);
  const auto group = [&](int member) { return static_cast<std::size_t>(member % groups); };
  for (int member = 0; member < costs.members(); ++member)
    starts[group(member)] = std::max(starts[group(member)], start_of_member(event, member));
  std::vector<EventTimes> of_group;
  for (int first = 0; first < costs.shards; ++first)
    of_group.push_back(
        times_of(starts[static_cast<std::size_t>(first)], {held(costs, event, first), 0}));
  for (int member = 0; member < costs.members(); ++member)
    block(times_.block_of(member))[static_cast<std::size_t>(event.event) * times_.width_ +
                                   static_cast<std::size_t>(member) % times_.width_] =
        of_group[group(member)];
}

/// Like Structure::begin_together.
void JobSimulator::begin_together(std::size_t number) {
  for (const auto& [event, leader] : structure_.followers()) {
    EventTimes* const own = block(number) + static_cast<std::size_t>(event) * times_.width_;
    const EventTimes* const first =
        block(number) + static_cast<std::size_t>(leader) * times_.width_;
    for (std::size_t lane = 0; lane < times_.width_; ++lane)
      own[lane].start = first[lane].start;
  }
}

void JobSimulator::finish() {
  std::vector<double> last(blocks_, 0);
  times_.ready_.assign(static_cast<std::size_t>(times_.members_), 0);
  on_all_cores(blocks_, [&](const auto& next) {
    for (auto number = next(); number; number = next()) {
      begin_together(*number);
      const EventTimes* own = block(*number);
      double* const ready = times_.ready_.data() + *number * times_.width_;
      const int count = members_in(*number);
      for (int event = 0; event < structure_.size(); ++event, own += times_.width_) {
        const bool alone =
            plan::is_compute(structure_.events()[event].instruction->kind) &&
            !plan::has_collective_waits(structure_.events()[event].instruction->kind);
        for (int lane = 0; lane < count; ++lane) {
          last[*number] = std::max(last[*number], own[lane].end);
          if (alone)
            ready[lane] = std::max(ready[lane], own[lane].end);
        }
      }
    }
  });
  times_.iteration_ = *std::max_element(last.begin(), last.end());
}

}  // namespace pipewright::sim
