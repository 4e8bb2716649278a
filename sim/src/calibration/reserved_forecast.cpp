#include "pipewright/sim/calibration/reserved_forecast.hpp"

#include "calibration_runs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/measured/megatron_words.hpp"

namespace pipewright::sim {
namespace {

ReservedForecast reserved_by(const plan::MeasuredRun& run, const plan::Cut& cut, std::size_t rank,
                             plan::Bytes memory) {
  ReservedForecast answer;
  if (plan::tells_megatron(run)) {
    answer.refused = "transformer_impl: such runs' allocations are counted, not replayed";
    return answer;
  }
  try {
    answer.verdict = plan::memory_verdict(run.training, cut, static_cast<int>(rank), memory);
  } catch (const plan::InputError& error) {
    answer.refused = error.what();
  }
  return answer;
}

}  // namespace

std::vector<ReservedForecast> reserved_forecast(const Calibration& calibration,
                                                const std::vector<plan::MeasuredRun>& runs,
                                                const std::vector<Forecast>& forecasts) {
  std::vector<ReservedForecast> all;
  const Assumption assumed{calibration.within_node, calibration.between_nodes};
  for (std::size_t at = 0; at < runs.size(); ++at)
    if (!forecasts[at].memory_refused.empty())
      all.push_back({.refused = forecasts[at].memory_refused});
    else
      all.push_back(reserved_by(runs[at], assumed_cut(calibration.cluster, runs[at], assumed),
                                forecasts[at].read, calibration.cluster.device.memory));
  return all;
}

}  // namespace pipewright::sim
