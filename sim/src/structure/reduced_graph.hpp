#pragma once

// Computes the longest path of a Structure in as few steps as possible. Receives are replaced by
// the events that they wait for, waits that others imply are dropped, and every remaining node
// waits for at most two others, so that a node is one line of arithmetic:
//
//   end = max(end[first], end[second] + latency) + held

#include <cstdint>
#include <vector>

#include "pipewright/plan/program/dependencies.hpp"
#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::sim {

class ReducedGraph {
 public:
  /// `order` lists every event after all that it waits for, `class_of` their cost classes.
  ReducedGraph(const plan::Program& program, const plan::Dependencies& events,
               const plan::LargeVector<int>& order, const plan::LargeVector<int>& class_of);

  int size() const { return static_cast<int>(nodes_.size()); }

  /// Fills `costs`, one entry per node class or, where durations differ by event, one per node.
  void fill_costs(const Durations& durations, std::vector<EventCost>& costs) const;
  /// Returns the last end of all events. `ends` is working memory.
  double longest_path(const Durations& durations, const std::vector<EventCost>& costs,
                      plan::LargeVector<double>& ends) const;

  /// A node. A transfer's end is its release; nodes that wait for its data add the latency.
  struct Node {
    std::uint32_t first;
    std::uint32_t second;
    std::uint32_t cost;  // into the costs by class
  };
  /// The source of a cost: events (or, in class_sources_, classes); -1: none.
  struct Source {
    int held = -1;
    int latency = -1;  // of the send that `second` is
    friend bool operator==(const Source&, const Source&) = default;
  };
  struct Sink {
    std::uint32_t node;
    int send;        // its latency is added; -1: none
    int send_class;  // its class
  };
  /// Returns the nodes, each after those that it waits for; the first is the start of the
  /// iteration.
  const plan::LargeVector<Node>& nodes() const { return nodes_; }
  /// Returns by node the events that its costs come from.
  const plan::LargeVector<Source>& sources() const { return node_sources_; }
  /// Returns the nodes that no node waits for, and those whose data no node waits for.
  const std::vector<Sink>& sinks() const { return sinks_; }

 private:
  class Builder;

  template <bool by_event>
  void walk(const std::vector<EventCost>& costs, plan::LargeVector<double>& ends) const;

  plan::LargeVector<Node> nodes_;  // node 0 is the start of the iteration
  plan::LargeVector<Source> node_sources_;
  std::vector<Source> class_sources_;
  std::vector<Sink> sinks_;
};

}  // namespace pipewright::sim
