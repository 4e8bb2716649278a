#include "pipewright/search/calibration/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>

#include "calibration_runs.hpp"
#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/cluster/device_kind.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::search {
namespace {

using models::MeasuredRun;

/// Returns why a model is not a decoder whose layers are timed, or an empty string.
std::string other_family(const MeasuredRun& run) {
  const std::string& family = run.options.family;
  if (family == "t5")
    return "family is t5: the layers of encoders cannot be timed";
  if (family == "hybrid" ||
      !models::hybrid_pattern(run.options.arguments, run.training.model.layers).empty())
    return "state-space layers cannot be timed";
  return {};
}

/// Returns the rank that the run names, or the one that holds most.
std::size_t read_rank(const MeasuredRun& run, const std::vector<RankForecast>& ranks) {
  const std::string& named = run.options.memory_rank;
  if (named == "last")
    return ranks.size() - 1;
  std::size_t rank = 0;
  const auto end = std::from_chars(named.data(), named.data() + named.size(), rank).ptr;
  if (!named.empty() && end == named.data() + named.size())
    return std::min(rank, ranks.size() - 1);
  return static_cast<std::size_t>(std::ranges::max_element(ranks, {}, &RankForecast::peak_bytes) -
                                  ranks.begin());
}

/// Returns the memory of a pipeline's ranks: counted, if the run records everything that determines
/// its trainer's memory, otherwise by the machine's constants.
std::vector<RankForecast> rank_memory(const MeasuredRun& run, const plan::Cut& cut,
                                      const plan::MachineConstants& constants) {
  std::vector<RankForecast> ranks;
  if (!models::tells_megatron(run)) {
    for (const models::RankMemory& rank : models::transformer_memory(run.training, cut))
      ranks.push_back({.peak_bytes = models::peak_of({rank}, constants)});
    return ranks;
  }
  models::MegatronRun counted = models::megatron_run_of(run);
  for (counted.rank = 0; counted.rank < counted.cut.pipeline; ++counted.rank) {
    const models::MegatronMemory memory = models::megatron_memory(counted);
    ranks.push_back({.peak_bytes = static_cast<double>(memory.peak.value),
                     .allocated_bytes = static_cast<double>(memory.allocated.value),
                     .at_peak = memory.at_peak.holders()});
  }
  return ranks;
}

void add_memory(Forecast& answer, const MeasuredRun& run, const plan::Cut& cut,
                const plan::MachineConstants& constants) {
  try {
    answer.ranks = rank_memory(run, cut, constants);
    answer.read = read_rank(run, answer.ranks);
  } catch (const plan::InputError& error) {
    answer.memory_refused = error.what();
  }
}

}  // namespace

std::string time_refusal(const plan::Cluster& cluster, const MeasuredRun& run) {
  const std::string ours = plan::device_kind(cluster.device.name),
                    theirs = plan::device_kind(run.options.device);
  if (!ours.empty() && !theirs.empty() && ours != theirs)
    return fmt::format("gpu is {}, but the cluster has {}", theirs, ours);
  if (const std::string other = other_family(run); !other.empty())
    return other;
  if (const std::string refused = models::refused_argument(run); !refused.empty())
    return refused;
  if (run.training.model.predictions > 0)
    return fmt::format("mtp_layers is {}: multi-token prediction (MTP) modules cannot be timed",
                       run.training.model.predictions);
  if (const std::string& optimizer = run.options.optimizer;
      !optimizer.empty() && optimizer != "adam")
    return fmt::format("optimizer is {}: only the step of adam can be timed", optimizer);
  try {
    models::require_figures(cluster);
    require_nodes(cluster, run.cut.devices(), "the run");
    models::pipeline_shape(run.cut, run.training.batch);
  } catch (const plan::InputError& error) {
    return error.what();
  }
  return {};
}

std::vector<Forecast> forecast(const Calibration& calibration,
                               const std::vector<MeasuredRun>& runs) {
  std::vector<Forecast> all(runs.size());
  std::vector<MeasuredRun> timed;
  std::vector<std::size_t> places;
  const Assumption assumed{calibration.within_node, calibration.between_nodes};
  for (std::size_t at = 0; at < runs.size(); ++at) {
    add_memory(all[at], runs[at], assumed_cut(calibration.cluster, runs[at], assumed),
               calibration.physics);
    all[at].time_refused = time_refusal(calibration.cluster, runs[at]);
    if (!all[at].time_refused.empty())
      continue;
    timed.push_back(runs[at]);
    places.push_back(at);
  }
  const auto predicted = predict_runs(calibration, timed);
  for (std::size_t at = 0; at < places.size(); ++at)
    all[places[at]].time = predicted[at];
  return all;
}

std::vector<std::vector<Forecast>> forecast_across_halves(const plan::Cluster& cluster,
                                                          const std::vector<MeasuredRun>& runs,
                                                          int splits) {
  if (constexpr int most = 1000; splits > most)
    throw plan::InputError(
        fmt::format("{} splits into halves: at most {} are possible", splits, most));
  std::vector<std::vector<Forecast>> all;
  for (int split = 0; split < splits; ++split) {
    std::vector<std::size_t> order(runs.size());
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(static_cast<std::uint64_t>(split));
    for (std::size_t at = order.size(); at > 1; --at)  // reproducible on every machine
      std::swap(order[at - 1], order[random() % at]);
    auto& predicted = all.emplace_back(runs.size());
    for (const std::size_t half : {0U, 1U}) {
      std::vector<MeasuredRun> learnt, others;
      std::vector<std::size_t> places;
      for (std::size_t at = 0; at < order.size(); ++at)
        if (at % 2 == half) {
          learnt.push_back(runs[order[at]]);
        } else {
          others.push_back(runs[order[at]]);
          places.push_back(order[at]);
        }
      const auto answers = forecast(calibrate(cluster, learnt), others);
      for (std::size_t at = 0; at < places.size(); ++at)
        predicted[places[at]] = answers[at];
    }
  }
  return all;
}

}  // namespace pipewright::search
