// Models: their layers can be weighted, partitioned and written as a layout.

#include <string>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/constrained_partition.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "reader.hpp"

namespace model_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;
using pipewright::fuzz::read_back;

void try_text(std::string_view text) {
  const auto model = read_back(text, model_from_json);
  if (!model)
    return;
  const auto layers = static_cast<int>(model->layers.size());
  demand(layers > 0, "there is a layer");
  for (const LayerRange& tied : tied_ranges(*model))
    demand(0 <= tied.begin && tied.begin < tied.end && tied.end <= layers, "tied layers exist");
  const auto boundaries = balanced_boundaries(parameter_weights(*model), 2);
  demand(boundaries.front() == 0 && boundaries.back() == layers, "every layer is in a stage");
  if (find_layout_letters(*model))
    may_be_refused([&] { parse_layout(to_string(layout_of(*model, boundaries))); });
  may_be_refused([&] { type_weights(*model, "block"); });
}

const pipewright::fuzz::Reader reader("model", try_text);

}  // namespace model_fuzz
