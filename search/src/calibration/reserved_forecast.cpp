#include "pipewright/search/calibration/reserved_forecast.hpp"

#include "calibration_runs.hpp"
#include "pipewright/models/measured/megatron_words.hpp"

namespace pipewright::search {

models::ReservedMemory reserved_by(const models::MeasuredRun& run, const plan::Cut& cut,
                                   std::size_t rank, plan::Bytes memory) {
  if (models::tells_megatron(run))
    return {.refused = "transformer_impl: such runs' allocations are counted, not replayed"};
  return models::reserved_memory(run.training, cut, static_cast<int>(rank), memory);
}

std::vector<models::ReservedMemory> reserved_forecast(const Calibration& calibration,
                                                      const std::vector<models::MeasuredRun>& runs,
                                                      const std::vector<Forecast>& forecasts) {
  std::vector<models::ReservedMemory> all;
  const Assumption assumed{calibration.within_node, calibration.between_nodes};
  for (std::size_t at = 0; at < runs.size(); ++at)
    if (!forecasts[at].memory_refused.empty())
      all.push_back({.refused = forecasts[at].memory_refused});
    else
      all.push_back(reserved_by(runs[at], assumed_cut(calibration.cluster, runs[at], assumed),
                                forecasts[at].read, calibration.cluster.device.memory));
  return all;
}

}  // namespace pipewright::search
