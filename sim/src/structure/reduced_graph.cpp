#include "reduced_graph.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace pipewright::sim {
namespace {

constexpr int never = std::numeric_limits<int>::max();

}  // namespace

class ReducedGraph::Builder {
  /// A wait for an event, or for its data, which arrive a latency later.
  struct Wait {
    int event = -1;
    bool for_data = false;
  };

 public:
  Builder(ReducedGraph& graph, const plan::Program& program, const plan::Dependencies& events,
          const plan::LargeVector<int>& class_of)
      : graph_(graph),
        program_(program),
        events_(events),
        class_of_(class_of),
        node_of_(static_cast<std::size_t>(events.size()), -1),
        waits_of_(static_cast<std::size_t>(events.size())),
        holds_compute_(static_cast<std::size_t>(events.size()), 0),
        compute_place_(static_cast<std::size_t>(events.size()), never) {
    number_compute();
  }

  void run(const plan::LargeVector<int>& order) {
    graph_.nodes_.reserve(order.size());  // most receives are merged into others, so there are
                                          // fewer
    graph_.node_sources_.reserve(order.size());
    add_node({}, {}, {});  // the start
    for (const int event : order)
      add(event);
    find_sinks(order);
  }

 private:
  /// Numbers the compute of each rank. Every event gets a place by which it has ended: its own for
  /// events that occupy compute, that of its consumer for a receive.
  void number_compute() {
    std::vector<int> next(program_.ranks.size(), 0);
    for (int event = 0; event < events_.size(); ++event) {
      if (!plan::holds_compute(program_, events_[event].instruction->kind))
        continue;
      holds_compute_[at(event)] = 1;
      compute_place_[at(event)] = next[static_cast<std::size_t>(events_[event].rank)]++;
    }
    for (int event = 0; event < events_.size(); ++event) {
      const int data = events_[event].data;
      if (data >= 0 && holds_compute_[at(event)] != 0 && events_[data].rank == events_[event].rank)
        compute_place_[at(data)] = std::min(compute_place_[at(data)], compute_place_[at(event)]);
    }
  }

  void add(int event) {
    std::vector<Wait>& waits = scratch_;
    waits.clear();
    events_.for_each_predecessor(event, [&](int predecessor, plan::Until until) {
      if (!is_implied(predecessor, event))
        append(waits, predecessor, until == plan::Until::Done);
    });
    const plan::Instruction& i = *events_[event].instruction;
    drop_implied(waits, event);
    if (plan::is_send(i.kind) && program_.transfers == plan::TransferMode::Rendezvous)
      drop_implied(waits, events_[event].partner);  // it waits for both ends
    // A receive takes no time: an event that waits for it waits for its predecessors instead. A
    // receive that occupies compute, or has more than two waits, keeps its node.
    if (plan::is_receive(i.kind)) {
      for (Wait& wait : waits)
        if (wait.event == events_[event].partner)
          wait.for_data = false;  // released with the send; `append` adds the arrival
      if (holds_compute_[at(event)] == 0 && waits.size() <= 2) {
        std::copy(waits.begin(), waits.end(), waits_of_[at(event)].begin());
        return;
      }
    }
    node_of_[at(event)] = add_chain(waits, plan::is_receive(i.kind) ? -1 : event);
  }

  /// Adds the waits that "until `event` is done (or released)" stands for.
  void append(std::vector<Wait>& waits, int event, bool done) {
    if (!plan::is_receive(events_[event].instruction->kind)) {
      const bool is_send = plan::is_send(events_[event].instruction->kind);
      insert(waits, {event, done && is_send});
      return;
    }
    if (node_of_[at(event)] >= 0)
      insert(waits, {event, false});
    else
      for (const Wait& wait : waits_of_[at(event)])
        if (wait.event >= 0)
          insert(waits, wait);
    if (done)
      insert(waits, {events_[event].partner, true});
  }

  static void insert(std::vector<Wait>& waits, const Wait& wait) {
    for (Wait& known : waits)
      if (known.event == wait.event) {
        known.for_data = known.for_data || wait.for_data;
        return;
      }
    waits.push_back(wait);
  }

  /// Returns true if `other` has ended before the event that `event` waits for in its own rank's
  /// compute.
  bool is_implied(int other, int event) const {
    const int before = events_[event].compute;
    return before >= 0 && other != before && events_[other].rank == events_[event].rank &&
           compute_place_[at(other)] <= compute_place_[at(before)];
  }

  void drop_implied(std::vector<Wait>& waits, int event) {
    std::erase_if(waits, [&](const Wait& wait) { return is_implied(wait.event, event); });
  }

  /// Adds one node, after as many nodes without duration as it has waits beyond two.
  int add_chain(std::vector<Wait>& waits, int event) {
    std::partition(waits.begin(), waits.end(), [](const Wait& w) { return !w.for_data; });
    std::size_t next = 0;
    int first = 0;
    if (!waits.empty() && !waits.front().for_data)
      first = node_of_[at(waits[next++].event)];
    while (waits.size() - next > 1) {
      first = add_waiting(first, waits[next], -1);
      ++next;
    }
    if (next < waits.size())
      return add_waiting(first, waits[next], event);
    return add_node(first, 0, {.held = event, .latency = -1});
  }

  int add_waiting(int first, const Wait& wait, int event) {
    return add_node(first, node_of_[at(wait.event)],
                    {.held = event, .latency = wait.for_data ? wait.event : -1});
  }

  int add_node(int first, int second, Source source) {
    const Source by_class{.held = source.held < 0 ? -1 : class_of_[at(source.held)],
                          .latency = source.latency < 0 ? -1 : class_of_[at(source.latency)]};
    graph_.nodes_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second),
                             cost_class(by_class)});
    graph_.node_sources_.push_back(source);
    return graph_.size() - 1;
  }

  std::uint32_t cost_class(const Source& source) {
    const std::size_t held = at(source.held + 1);
    if (held >= cost_classes_.size())
      cost_classes_.resize(held + 1);
    for (const std::uint32_t known : cost_classes_[held])
      if (graph_.class_sources_[known] == source)
        return known;
    cost_classes_[held].push_back(static_cast<std::uint32_t>(graph_.class_sources_.size()));
    graph_.class_sources_.push_back(source);
    return cost_classes_[held].back();
  }

  /// Finds the nodes and the arrivals that no node waits for.
  void find_sinks(const plan::LargeVector<int>& order) {
    std::vector<char> has_successor(graph_.nodes_.size(), 0), arrival_used(node_of_.size(), 0);
    for (std::size_t node = 1; node < graph_.nodes_.size(); ++node) {
      has_successor[graph_.nodes_[node].first] = 1;
      has_successor[graph_.nodes_[node].second] = 1;
      const int send = graph_.node_sources_[node].latency;
      if (send >= 0)
        arrival_used[at(send)] = 1;
    }
    for (const int event : order) {
      const int node = node_of_[at(event)];
      if (node < 0)
        continue;
      const bool unused_arrival =
          plan::is_send(events_[event].instruction->kind) && arrival_used[at(event)] == 0;
      if (has_successor[at(node)] == 0 || unused_arrival)
        graph_.sinks_.push_back({static_cast<std::uint32_t>(node), unused_arrival ? event : -1,
                                 unused_arrival ? class_of_[at(event)] : -1});
    }
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  ReducedGraph& graph_;
  const plan::Program& program_;
  const plan::Dependencies& events_;
  const plan::LargeVector<int>& class_of_;
  plan::LargeVector<int> node_of_;                   // by event; -1: merged into others
  plan::LargeVector<std::array<Wait, 2>> waits_of_;  // of receives without a node
  std::vector<char> holds_compute_;                  // by event
  std::vector<int> compute_place_;  // by event: it has ended by this place of its rank's compute
  std::vector<Wait> scratch_;
  std::vector<std::vector<std::uint32_t>> cost_classes_;  // by class of the held event; few each
};

ReducedGraph::ReducedGraph(const plan::Program& program, const plan::Dependencies& events,
                           const plan::LargeVector<int>& order,
                           const plan::LargeVector<int>& class_of) {
  Builder(*this, program, events, class_of).run(order);
}

void ReducedGraph::fill_costs(const Durations& durations, std::vector<EventCost>& costs) const {
  const auto& table = durations.table();
  const auto fill = [&](const auto& sources) {
    costs.resize(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Source& source = sources[i];
      costs[i].held = source.held < 0 ? 0 : table[static_cast<std::size_t>(source.held)].held;
      costs[i].latency =
          source.latency < 0 ? 0 : table[static_cast<std::size_t>(source.latency)].latency;
    }
  };
  if (durations.by_event())
    fill(node_sources_);
  else
    fill(class_sources_);
}

template <bool by_event>
void ReducedGraph::walk(const std::vector<EventCost>& costs,
                        plan::LargeVector<double>& ends) const {
  ends.resize(nodes_.size());
  double* const end = ends.data();
  const EventCost* const cost_of = costs.data();
  const Node* const nodes = nodes_.data();
  const std::size_t count = nodes_.size();
  end[0] = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const Node node = nodes[i];
    const EventCost cost = cost_of[by_event ? i : node.cost];
    end[i] = std::max(end[node.first], end[node.second] + cost.latency) + cost.held;
  }
}

double ReducedGraph::longest_path(const Durations& durations, const std::vector<EventCost>& costs,
                                  plan::LargeVector<double>& ends) const {
  if (durations.by_event())
    walk<true>(costs, ends);
  else
    walk<false>(costs, ends);
  double last = 0;
  for (const Sink& sink : sinks_) {
    double latency = 0;
    if (sink.send >= 0) {
      const int entry = durations.by_event() ? sink.send : sink.send_class;
      latency = durations.table()[static_cast<std::size_t>(entry)].latency;
    }
    last = std::max(last, ends[sink.node] + latency);
  }
  return last;
}

}  // namespace pipewright::sim
