#pragma once

// Equal stages on two nodes, in round figures, and a comparison of the times of two engines.

#include <algorithm>
#include <cmath>
#include <string>

#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/times.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

inline double largest_difference(const sim::Times& one, const sim::Times& other) {
  REQUIRE(one.events.size() == other.events.size());
  double largest = std::abs(one.iteration - other.iteration);
  for (std::size_t i = 0; i < one.events.size(); ++i)
    largest = std::max({largest, std::abs(one.events[i].start - other.events[i].start),
                        std::abs(one.events[i].released - other.events[i].released),
                        std::abs(one.events[i].end - other.events[i].end)});
  return largest;
}

/// Returns two nodes of `width` devices each, whose cards, and buses inside, move 100 bytes per
/// second.
inline plan::Cluster two_nodes(int width, bool shared) {
  plan::Cluster cluster;
  cluster.nodes = 2;
  cluster.devices_per_node = width;
  cluster.within_node =
      cluster.between_nodes = {.latency = {0}, .bandwidth_per_s = 100, .shared = shared};
  return cluster;
}

/// Returns costs of equal stages: all compute takes a second, every transfer has 100 bytes.
inline sim::StepCosts seconds_and_hundreds(int stages, const plan::Cluster& cluster) {
  sim::StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(stages));
  for (plan::StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = {1};
    stage.output = stage.input_gradient_bytes = {100};
  }
  costs.cluster = cluster;
  return costs;
}

inline double end_of(const sim::Structure& structure, const sim::Times& times,
                     const std::string& instruction) {
  for (int event = 0; event < structure.size(); ++event)
    if (to_string(*structure.events()[event].instruction) == instruction)
      return times[event].end;
  FAIL("no instruction " << instruction);
  return 0;
}

}  // namespace pipewright::test
