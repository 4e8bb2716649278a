#include "print/prediction_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/loop/predict/sensitivities.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "print/device_memory.hpp"

namespace pipewright::cli {
namespace {

std::string critical_line(const loop::Prediction& prediction, const sim::ScenarioPlan& plan) {
  std::string text = "critical path:";
  const auto shares = loop::critical_shares(*plan.structure, prediction.times, prediction.critical);
  for (std::size_t i = 0; i < shares.size() && i < 6; ++i)
    text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", shares[i].first,
                        100 * shares[i].second / prediction.times.iteration);
  if (shares.size() > 6)
    text += ", …";
  return text + "\n";
}

std::string held_by(const std::vector<sim::Holder>& holders) {
  std::string text;
  for (std::size_t i = 0; i < holders.size() && i < 2; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", holders[i].name,
                        plan::bytes_text(holders[i].bytes));
  return text + (holders.size() > 2 ? ", …" : "");
}

/// Returns all causes except waiting for a late tensor-parallel rank: in a prediction these ranks
/// are equal.
std::vector<std::size_t> causes_of_prediction() {
  std::vector<std::size_t> causes;
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    if (static_cast<plan::IdleCause>(cause) != plan::IdleCause::Shards)
      causes.push_back(cause);
  return causes;
}

}  // namespace

/// Returns the tensor-parallel communication; empty if no stage has several tensor-parallel ranks.
std::string shards_line(const loop::Prediction& prediction) {
  const auto busy = plan::busy_per_rank(prediction.timeline);
  const auto shards = plan::shards_per_rank(prediction.timeline);
  double least = 1, most = 0;
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double share = busy[rank] > plan::Seconds{} ? shards[rank] / busy[rank] : 0;
    least = std::min(least, share), most = std::max(most, share);
  }
  return most > 0
             ? fmt::format("tensor-parallel communication: {:.1f} to {:.1f} % of compute time\n",
                           100 * least, 100 * most)
             : "";
}

std::string prediction_table(const loop::Prediction& prediction, const sim::ScenarioPlan& plan,
                             const plan::LayerCosts& costs, const sim::Throughput& throughput,
                             const std::vector<models::DeviceMemory>& memory) {
  const double iteration = prediction.times.iteration;
  auto text = fmt::format("iteration {}, {:.0f} {}/s", plan::time_text(iteration),
                          throughput.units_per_s, throughput.unit);
  if (throughput.mfu > 0)
    text += fmt::format(", MFU {:.1f} %", 100 * throughput.mfu);
  if (costs.drift > 0)
    text += fmt::format(
        "\nbetween {} and {}, because the device drifted by {:.1f} % in the {:.0f} s in "
        "which its costs were measured",
        plan::time_text(iteration * (1 - costs.drift)),
        plan::time_text(iteration * (1 + costs.drift)), 100 * costs.drift,
        costs.measured_over.value);
  text += "\n" + critical_line(prediction, plan) + shards_line(prediction);
  const std::vector<std::size_t> causes = causes_of_prediction();
  const plan::Unit time = plan::column_unit(plan::Seconds{iteration});
  text += fmt::format("{:<4} {:>11} {:>10} {:>9}", "rank", fmt::format("busy {}", time.name),
                      fmt::format("bubble {}", time.name), "bubble %");
  for (const std::size_t cause : causes)
    text += fmt::format("  {:>9}", plan::idle_causes()[cause]);
  const auto fullest = std::ranges::max_element(memory, {}, &models::DeviceMemory::total);
  const plan::Unit size =
      plan::column_unit(fullest == memory.end() ? plan::Bytes{} : fullest->total());
  text += fmt::format("  memory {}  most at {:<2} held then by tensors\n", size.name, time.name);
  const auto busy = plan::busy_per_rank(prediction.timeline);
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double idle = prediction.idle.of_rank(static_cast<int>(rank));
    text += fmt::format("{:<4} {:11.3f} {:10.3f} {:9.1f}", rank, busy[rank].value / time.size,
                        idle / time.size, 100 * idle / iteration);
    for (const std::size_t cause : causes)
      text += fmt::format("  {:9.3f}", prediction.idle.by_cause[rank][cause] / time.size);
    text += fmt::format("  {:9.{}f}  {:<10.3f} {}\n",
                        static_cast<double>(memory[rank].total().value) / size.size,
                        size.size >= 1e9 ? 3 : 1, prediction.peaks[rank].time / time.size,
                        held_by(prediction.at_peaks[rank]));
  }
  return text + fullest_line(memory);
}

std::string sensitivity_table(const sim::ScenarioPlan& plan, const sim::Times& times,
                              const plan::LayerCosts& costs) {
  const loop::Sensitivities found = loop::sensitivities_of(plan, times);
  std::string text =
      "1 ms less per microbatch saves, in ms per iteration:\n"
      "stage  whole  forward  input gradient  weight gradient\n";
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    text += fmt::format("{:<5} {:6.2f} {:8.2f} {:15.2f} {:16.2f}\n", s, found.stages[s].all,
                        found.stages[s].forward, found.stages[s].input_gradient,
                        found.stages[s].weight_gradient);
  std::vector<std::pair<double, std::size_t>> layers;
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    for (int l = plan.partition.boundaries[s]; l < plan.partition.boundaries[s + 1]; ++l)
      layers.emplace_back(
          -loop::layer_saving(costs.layers[static_cast<std::size_t>(l)], found.stages[s]), l);
  std::sort(layers.begin(), layers.end());
  text += "layers that matter most:";
  for (std::size_t i = 0; i < layers.size() && i < 5; ++i)
    text += fmt::format("{} {} \"{}\" {:.2f}", i == 0 ? "" : ",", layers[i].second,
                        costs.layers[layers[i].second].name, -layers[i].first);
  text +=
      "\ntransfers: 1 ms less latency, or 1 ms less on the link, of every transfer between two "
      "ranks\n";
  for (const sim::LinkSensitivity& link : found.links)
    text +=
        fmt::format("{} to {}: {:.2f}, {:.2f}\n", link.from, link.to, link.latency, link.occupancy);
  return text;
}

}  // namespace pipewright::cli
