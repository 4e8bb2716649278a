#include "pipewright/loop/comparison.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {

Comparison compare(const plan::Timeline& predicted, const plan::Timeline& measured) {
  return {plan::figures_of(predicted),
          plan::figures_of(measured),
          plan::time_per_kind(predicted),
          plan::time_per_kind(measured),
          plan::compare_actions(predicted, measured),
          plan::compare_idle(predicted, measured)};
}

plan::Json to_json(const Comparison& comparison) {
  return {{"predicted", plan::to_json(comparison.predicted)},
          {"measured", plan::to_json(comparison.measured)},
          {"error_percent", plan::error_json(comparison.predicted, comparison.measured)},
          {"actions", plan::kinds_json(comparison.predicted_kinds, comparison.measured_kinds)},
          {"only_predicted", comparison.actions.only_predicted},
          {"only_measured", comparison.actions.only_measured},
          {"idle_s", plan::idle_json(comparison.idle)}};
}

}  // namespace pipewright::loop
