#include "pipewright/sim/draws/lane_simulator.hpp"

#include <algorithm>

#include "structure/reduced_graph.hpp"

namespace pipewright::sim {

/// Makes the nodes. The end of a node is kept until the last node that waits for it has begun; its
/// place is then reused, so that all ends in use lie close together.
class LaneSimulator::Builder {
 public:
  Builder(LaneSimulator& made, const Structure& structure, const StepCosts& costs)
      : made_(made), structure_(structure), graph_(structure.reduce()) {
    durations_.fill(structure, costs);
    find_last_waits();
  }

  void run() {
    place_of_.assign(graph_.nodes().size(), 0);
    for (std::size_t at = 1; at < graph_.nodes().size(); ++at)
      add(at);
    for (const ReducedGraph::Sink& sink : graph_.sinks())
      if (sink.node > 0)
        made_.nodes_[sink.node - 1].behind =
            sink.send < 0 ? 0 : durations_.of(structure_, sink.send).latency;
  }

 private:
  void find_last_waits() {
    last_wait_.assign(graph_.nodes().size(), 0);
    for (std::size_t at = 1; at < graph_.nodes().size(); ++at) {
      last_wait_[graph_.nodes()[at].first] = at;
      last_wait_[graph_.nodes()[at].second] = at;
    }
  }

  void add(std::size_t at) {
    const ReducedGraph::Node& from = graph_.nodes()[at];
    const ReducedGraph::Source& source = graph_.sources()[at];
    Node node{.first = place_of_[from.first], .second = place_of_[from.second]};
    if (source.latency >= 0)
      node.latency = durations_.of(structure_, source.latency).latency;
    if (source.held >= 0)
      hold(source.held, node);
    node.own = place_of_[at] = free_place();
    node.factors = made_.factors_.size();
    made_.nodes_.push_back(node);
    for (std::size_t pipeline = 0; pipeline < made_.alike_; ++pipeline)
      made_.factors_.push_back(
          source.held < 0 ? nullptr
                          : made_.jitter_.factors(static_cast<int>(pipeline), source.held));
    leave(from.first, at);
    if (from.second != from.first)
      leave(from.second, at);
    if (last_wait_[at] == 0)
      free_.push_back(node.own);
  }

  void hold(int event, Node& node) const {
    const auto& own = structure_.events()[event];
    const plan::Group group = plan::group_of(own.instruction->kind);
    node.rank = static_cast<std::size_t>(own.rank);
    node.held = durations_.of(structure_, event).held;
    node.meets = (group == plan::Group::Copies || group == plan::Group::All) &&
                 structure_.events().leader_of(event) == event;
  }

  std::uint32_t free_place() {
    if (free_.empty())
      return static_cast<std::uint32_t>(made_.places_++);
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  /// Frees the place of `before` if `at` was its last wait. The start's place is never freed.
  void leave(std::size_t before, std::size_t at) {
    if (before > 0 && last_wait_[before] == at)
      free_.push_back(place_of_[before]);
  }

  LaneSimulator& made_;
  const Structure& structure_;
  const ReducedGraph& graph_;
  Durations durations_;
  std::vector<std::size_t> last_wait_;  // by node; 0: no node waits
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint32_t> free_;
};

namespace {

using Lanes = LaneSimulator::Lanes;

/// Returns the later of two ends, with `latency` added to the second.
inline Lanes later_of(const Lanes& first, const Lanes& second, double latency) {
  Lanes later;
  for (std::size_t lane = 0; lane < later.size(); ++lane)
    later[lane] = std::max(first[lane], second[lane] + latency);
  return later;
}

/// Returns the ends of an event that takes `seconds`, scaled in each sample by its step's factor.
inline Lanes end_of(Lanes start, double seconds, const double* factors, const int* steps) {
  if (factors == nullptr)
    for (double& end : start)
      end += seconds;
  else
    for (std::size_t lane = 0; lane < start.size(); ++lane)
      start[lane] += seconds * factors[steps[lane]];
  return start;
}

}  // namespace

/// The ends of a group of samples in all pipelines, and their inputs.
struct LaneSimulator::Group {
  Group(const LaneSimulator& simulator, std::size_t group, Memory& memory)
      : ends(memory.ends.data() + group * simulator.copies_),
        steps(memory.steps.data() + group * simulator.workers() * lanes),
        last(memory.last[group]),
        stride(simulator.groups_ * simulator.copies_) {}

  Lanes* of(std::uint32_t place) const { return ends + place * stride; }

  Lanes* ends;
  const int* steps;
  Lanes& last;
  std::size_t stride;
};

LaneSimulator::LaneSimulator(const Structure& structure, const StepCosts& costs,
                             const JobJitter& jitter)
    : jitter_(jitter),
      copies_(static_cast<std::size_t>(jitter.copies())),
      alike_(static_cast<std::size_t>(jitter.alike())),
      ranks_(static_cast<std::size_t>(jitter.ranks())),
      groups_(std::max(std::size_t{1}, most_columns / copies_)) {
  Builder(*this, structure, costs).run();
  for (std::size_t copy = 0; copy < copies_; ++copy)
    like_.push_back(copy % alike_);
}

bool LaneSimulator::can_time(const Structure& structure, const StepCosts& costs) {
  return costs.contended.empty() && !with_overheads(structure, costs) &&
         !plan::shares_links(costs.cluster);
}

std::span<const double> LaneSimulator::iterations(std::uint64_t seed, std::uint64_t first,
                                                  Memory& memory) const {
  memory.steps.resize(groups_ * workers() * lanes);
  memory.ends.resize(places_ * groups_ * copies_);
  std::fill_n(memory.ends.begin(), groups_ * copies_, Lanes{});
  memory.last.assign(groups_, Lanes{});
  std::vector<Group> groups;
  for (std::size_t group = 0; group < groups_; ++group) {
    groups.emplace_back(*this, group, memory);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      jitter_.steps().draw(seed, first + group * lanes + lane,
                           memory.steps.data() + group * workers() * lanes + lane, lanes);
  }
  for (const Node& node : nodes_)
    for (const Group& group : groups)
      if (node.meets)
        time_together(node, group);
      else
        time_each(node, group);
  return {memory.last.front().data(), at_once()};
}

void LaneSimulator::time_each(const Node& node, const Group& group) const {
  const Lanes* const first = group.of(node.first);
  const Lanes* const second = group.of(node.second);
  Lanes* const own = group.of(node.own);
  const int* steps = group.steps + node.rank * lanes;
  for (std::size_t copy = 0; copy < copies_; ++copy, steps += ranks_ * lanes)
    own[copy] = end_of(later_of(first[copy], second[copy], node.latency), node.held,
                       factors_[node.factors + like_[copy]], steps);
  if (node.behind >= 0)
    for (std::size_t copy = 0; copy < copies_; ++copy)
      group.last = later_of(group.last, own[copy], node.behind);
}

/// Times a node in which all pipelines meet: they begin when the last is ready, and take the time
/// of the first.
void LaneSimulator::time_together(const Node& node, const Group& group) const {
  Lanes start{};
  for (std::size_t copy = 0; copy < copies_; ++copy)
    start = later_of(
        start, later_of(group.of(node.first)[copy], group.of(node.second)[copy], node.latency), 0);
  const Lanes end =
      end_of(start, node.held, factors_[node.factors], group.steps + node.rank * lanes);
  std::fill_n(group.of(node.own), copies_, end);
  if (node.behind >= 0)
    group.last = later_of(group.last, end, node.behind);
}

}  // namespace pipewright::sim
