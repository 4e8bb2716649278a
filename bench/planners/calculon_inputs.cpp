#include "planners/calculon_inputs.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::planners {
namespace {

using plan::InputError;
using plan::Json;

CalculonRate rate_of(double peak, const Json& steps, double unit) {
  CalculonRate rate{.peak = peak};
  for (const Json& step : steps)
    rate.steps.push_back(
        {.least = step.at(0).get<double>() * unit, .part = step.at(1).get<double>()});
  if (rate.steps.empty() || rate.steps.back().least > 0)
    throw InputError("a rate must define the part that the smallest operations reach");
  return rate;
}

CalculonRate engine(const Json& root, const std::string& name) {
  const Json& numbers = root.at(name).at("float16");
  return rate_of(numbers.at("tflops").get<double>() * 1e12, numbers.at("gflops_efficiency"), 1e9);
}

CalculonRate memory(const Json& root, const std::string& name) {
  const Json& numbers = root.at(name);
  return rate_of(numbers.at("GBps").get<double>() * 1e9, numbers.at("MB_efficiency"), 1e6);
}

double gibibytes(const Json& root, const std::string& name) {
  return root.at(name).at("GiB").get<double>() * 1024 * 1024 * 1024;
}

CalculonNetwork network_of(const Json& object) {
  const auto collective = [&](const std::string& name) {
    const Json& numbers = object.at("ops").at(name);
    return CalculonNetwork::Collective{.scale = numbers.at(0).get<double>(),
                                       .offset = numbers.at(1).get<double>()};
  };
  const double part = object.at("efficiency").get<double>();
  if (object.at("ops").at("p2p").at(0).get<double>() != 1)
    throw InputError("a network must send each byte once");
  return {.bytes_per_s = object.at("bandwidth").get<double>() * 1e9 * part,
          .latency_s = object.at("latency").get<double>(),
          .size = object.at("size").get<int>(),
          .filled = object.at("must_be_filled").get<bool>(),
          .processor_usage = object.at("processor_usage").get<double>(),
          .all_reduce = collective("all_reduce"),
          .all_gather = collective("all_gather"),
          .reduce_scatter = collective("reduce_scatter")};
}

CalculonModel model_of(const Json& root) {
  return {.hidden = root.at("hidden").get<double>(),
          .feed_forward = root.at("feedforward").get<double>(),
          .sequence = root.at("seq_size").get<double>(),
          .heads = root.at("attn_heads").get<double>(),
          .head_size = root.at("attn_size").get<double>(),
          .blocks = root.at("num_blocks").get<int>()};
}

CalculonMachine machine_of(const Json& root) {
  CalculonMachine machine{.matrix = engine(root, "matrix"),
                          .vector = engine(root, "vector"),
                          .memory = memory(root, "mem1"),
                          .far_memory = memory(root, "mem2"),
                          .memory_bytes = gibibytes(root, "mem1"),
                          .far_memory_bytes = gibibytes(root, "mem2"),
                          .overlaps_memory = root.at("processing_mode") == "roofline"};
  for (const Json& network : root.at("networks"))
    machine.networks.push_back(network_of(network));
  return machine;
}

template <class Value>
Value read(const std::filesystem::path& file, Value (*value_of)(const Json&)) {
  const auto document = plan::JsonDocument::read(file);
  try {
    return value_of(document.root());
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace

double CalculonRate::seconds(double size) const {
  for (const Step& step : steps)
    if (size >= step.least)
      return size / (peak * step.part);
  return 0;
}

double CalculonNetwork::seconds(const Collective& collective, double bytes, int devices) const {
  const double moved = bytes * collective.scale * (1 + collective.offset / devices);
  return latency_s + moved / bytes_per_s;
}

CalculonModel read_calculon_model(const std::filesystem::path& file) {
  return read(file, model_of);
}

CalculonMachine read_calculon_machine(const std::filesystem::path& file) {
  return read(file, machine_of);
}

}  // namespace pipewright::planners
