// Layer costs: they can be summed to stages under any partition and scaled to microbatch sizes.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "reader.hpp"

namespace costs_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;
using pipewright::fuzz::read_back;

void try_stages(const LayerCosts& costs, int stages) {
  const Partition partition =
      Partition{uniform_boundaries(static_cast<int>(costs.layers.size()), stages)};
  for (const StageCost& stage : stage_costs(costs, partition)) {
    const Bytes few = stage_memory(stage, 1);
    demand(few >= Bytes{}, "memory is not negative");
    demand(stage_memory(stage, 1000) >= few, "more microbatches need no less memory");
  }
}

void try_text(std::string_view text) {
  const auto costs = read_back(text, layer_costs_from_json);
  if (!costs)
    return;
  demand(!costs->layers.empty(), "there is a layer");
  for (const int stages : {1, 2, 3})
    if (stages <= static_cast<int>(costs->layers.size()))
      try_stages(*costs, stages);
  may_be_refused([&] { balanced_boundaries(profile_weights(*costs), 2); });
  may_be_refused([&] { balanced_boundaries(parameter_weights(*costs), 2); });
}

const pipewright::fuzz::Reader reader("costs", try_text);

}  // namespace costs_fuzz
