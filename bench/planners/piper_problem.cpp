#include "planners/piper_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::planners {
namespace {

using plan::InputError;
using plan::Json;

/// Indices of nodes by their ids in the file.
using Places = std::map<int, int>;

std::map<int, double> bytes_by_node(const Json& object, const Places& places) {
  std::map<int, double> bytes;
  for (const auto& [id, value] : object.items())
    if (value.get<double>() != 0)
      bytes[places.at(std::stoi(id))] = value.get<double>();
  return bytes;
}

PiperSplit split_of(int tensor, const Json& variants, const Places& places) {
  if (variants.empty() || variants.size() > 2)
    throw InputError(
        fmt::format("{} variants on {} devices, 1 or 2 are possible", variants.size(), tensor));
  PiperSplit split{.tensor = tensor};
  for (const Json& variant : variants) {
    PiperSplit common{.tensor = tensor,
                      .parameter_bytes = variant.at("parameterSize").get<double>(),
                      .receive_bytes = bytes_by_node(variant.at("syncTimeFw"), places),
                      .send_bytes = bytes_by_node(variant.at("syncTimeBw"), places),
                      .variants = split.variants};
    if (!split.variants.empty() && split != common)
      throw InputError("variants of a node must have the same parameters and transfers");
    split = std::move(common);
    split.variants.push_back({.name = variant.at("id").get<std::string>(),
                              .seconds = variant.at("timePerSample").get<double>(),
                              .bytes_per_microbatch = variant.at("memoryUsageA").get<double>(),
                              .bytes = variant.at("memoryUsageB").get<double>()});
  }
  return split;
}

PiperNode node_of(const Json& object, const Places& places) {
  PiperNode node{.name = object.value("name", "")};
  for (const auto& [tensor, variants] : object.at("TMPCs").items())
    node.splits.push_back(split_of(std::stoi(tensor), variants, places));
  std::sort(node.splits.begin(), node.splits.end(),
            [](const PiperSplit& a, const PiperSplit& b) { return a.tensor < b.tensor; });
  return node;
}

PiperProblem problem_of(const Json& root) {
  PiperProblem problem{.memory_bytes = root.at("maxMemoryPerDevice").get<double>(),
                       .bandwidth_per_s = root.at("bandwidth").get<double>(),
                       .devices = root.at("maxDevices").get<int>(),
                       .microbatches = root.at("mbsInBatch").get<int>()};
  Places places;
  for (const Json& node : root.at("nodes"))
    places.emplace(node.at("id").get<int>(), static_cast<int>(places.size()));
  for (const Json& node : root.at("nodes"))
    problem.nodes.push_back(node_of(node, places));
  for (const Json& edge : root.at("edges"))
    problem.edges.push_back({.from = places.at(edge.at("sourceId").get<int>()),
                             .to = places.at(edge.at("destId").get<int>()),
                             .bytes = edge.at("communicationCost").get<double>()});
  return problem;
}

}  // namespace

PiperProblem read_piper_problem(const std::filesystem::path& file) {
  const auto document = plan::JsonDocument::read(file);
  try {
    return problem_of(document.root());
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  } catch (const std::logic_error& error) {  // an id that is not a number, or not a node's
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace pipewright::planners
