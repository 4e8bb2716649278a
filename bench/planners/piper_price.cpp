#include "planners/piper_price.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::planners {
namespace {

using plan::InputError;

const PiperSplit& split_on(const PiperNode& node, int tensor) {
  for (const PiperSplit& split : node.splits)
    if (split.tensor == tensor)
      return split;
  throw InputError(fmt::format("{} cannot run on {} devices", node.name, tensor));
}

double at_or_zero(const std::map<int, double>& bytes, int node) {
  const auto found = bytes.find(node);
  return found == bytes.end() ? 0 : found->second;
}

/// Returns the stage of each node.
std::vector<int> stages_of_nodes(const PiperProblem& problem,
                                 const std::vector<PiperStage>& stages) {
  std::vector<int> of(problem.nodes.size(), -1);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (const int node : stages[stage].nodes) {
      int& place = of.at(static_cast<std::size_t>(node));
      if (place >= 0)
        throw InputError(fmt::format("node {} is in two stages", node));
      place = static_cast<int>(stage);
    }
  if (std::find(of.begin(), of.end(), -1) != of.end())
    throw InputError("a node is in no stage");
  for (const PiperEdge& edge : problem.edges)
    if (of[static_cast<std::size_t>(edge.from)] > of[static_cast<std::size_t>(edge.to)])
      throw InputError(fmt::format("the edge from {} to {} leads backwards", edge.from, edge.to));
  return of;
}

double stage_seconds(const PiperProblem& problem, const std::vector<int>& stage_of,
                     const PiperStage& stage, int copies_to_the_end) {
  double seconds = 0, parameters = 0, crossing = 0, bytes = 0;
  const int under_way = (copies_to_the_end + stage.data - 1) / stage.data;
  for (std::size_t at = 0; at < stage.nodes.size(); ++at) {
    const int node = stage.nodes[at];
    const PiperSplit& split = split_on(problem.nodes[static_cast<std::size_t>(node)], stage.tensor);
    const PiperVariant& variant =
        split.variants.at(static_cast<std::size_t>(stage.variants.at(at)));
    seconds += variant.seconds;
    parameters += split.parameter_bytes;
    bytes += variant.bytes_per_microbatch * under_way + variant.bytes;
    for (const PiperEdge& edge : problem.edges) {
      if (stage_of[static_cast<std::size_t>(edge.from)] ==
          stage_of[static_cast<std::size_t>(edge.to)])
        continue;
      if (edge.to == node)
        crossing += 2 * (edge.bytes + at_or_zero(split.receive_bytes, edge.from));
      if (edge.from == node)
        crossing += 2 * (edge.bytes + at_or_zero(split.send_bytes, edge.to));
    }
  }
  if (bytes > problem.memory_bytes * (1 + 1e-12))
    throw InputError(fmt::format("a stage needs {} bytes of {}", bytes, problem.memory_bytes));
  const double copies = stage.data;
  return (seconds + crossing / problem.bandwidth_per_s) / copies +
         4 * (copies - 1) * parameters / copies / problem.microbatches / problem.bandwidth_per_s;
}

}  // namespace

double piper_seconds(const PiperProblem& problem, const std::vector<PiperStage>& stages) {
  const auto stage_of = stages_of_nodes(problem, stages);
  int devices = 0, copies = 0;
  double slowest = 0;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    if (stage->data < 1 || problem.microbatches % stage->data != 0)
      throw InputError(fmt::format("{} copies do not divide the {} microbatches", stage->data,
                                   problem.microbatches));
    devices += stage->tensor * stage->data;
    copies += stage->data;
    slowest = std::max(slowest, stage_seconds(problem, stage_of, *stage, copies));
  }
  if (devices > problem.devices || copies > problem.microbatches)
    throw InputError(
        fmt::format("{} devices and {} copies: there are {} devices and {} microbatches", devices,
                    copies, problem.devices, problem.microbatches));
  return slowest;
}

}  // namespace pipewright::planners
