#include "pipewright/loop/compare/comparison.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {

Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured) {
  return {figures_of(predicted),
          figures_of(measured),
          time_per_kind(predicted),
          time_per_kind(measured),
          compare_actions(predicted, measured),
          compare_idle(predicted, measured)};
}

plan::Json to_json(const Comparison& comparison) {
  return {{"predicted", to_json(comparison.predicted)},
          {"measured", to_json(comparison.measured)},
          {"error_percent", error_json(comparison.predicted, comparison.measured)},
          {"actions", kinds_json(comparison.predicted_kinds, comparison.measured_kinds)},
          {"only_predicted", comparison.actions.only_predicted},
          {"only_measured", comparison.actions.only_measured},
          {"idle_s", idle_json(comparison.idle)}};
}

}  // namespace pipewright::loop
