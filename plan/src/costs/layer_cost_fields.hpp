#pragma once

// Field lists of a layer's costs, as a costs file contains them.

#include <array>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/fields.hpp"

namespace pipewright::plan {

/// Keys in the order of LayerTimes. The first three and the last are required in a file.
using TimeKeys = std::array<const char*, 5>;
inline constexpr TimeKeys time_keys{"forward_s", "input_gradient_s", "weight_gradient_s",
                                    "splitting_s", "optimizer_step_s"};
inline constexpr TimeKeys contended_time_keys{
    "contended_forward_s", "contended_input_gradient_s", "contended_weight_gradient_s",
    "contended_splitting_s", "contended_optimizer_step_s"};

template <MaybeConst<LayerTimes> Struct, class Visit>
void visit_times(Struct& s, const TimeKeys& keys, const FieldRule& rule, Visit&& visit) {
  visit(keys[0], s.forward, rule, "Forward");
  visit(keys[1], s.input_gradient, rule,
        "Part of the backward that computes the gradient of the input");
  visit(keys[2], s.weight_gradient, rule, "The rest of the backward");
  visit(keys[3], s.splitting, any(),
        "Extra time of these two parts compared with an undivided backward");
  visit(keys[4], s.optimizer_step, rule, "Optimizer step of the layer's parameters, once per step");
}

template <MaybeConst<PartitionCollectives> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("times", s.times, within(at_least(0)), "Number of times per microbatch.");
  visit("bytes", s.bytes, any(), "Bytes of each rank, each time.");
  visit("backward_times", s.backward_times, within(at_least(-1)),
        "Number of times in the backward; -1: as in the forward.");
}

template <MaybeConst<ExpertLoad> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within({.least = 2, .most = size_range.most})),
        "Expert-parallel size.");
  visit("busiest", s.busiest, needed(within(at_least(1))),
        "Load of the busiest rank over the mean.");
}

template <MaybeConst<RuntimeCost> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Name and version of the runtime");
  visit("forward_s", s.forward, any(), "Time of an action in addition to its layers");
  visit("backward_s", s.backward, any(), "Likewise");
  visit("input_gradient_s", s.input_gradient, any(), "Likewise");
  visit("weight_gradient_s", s.weight_gradient, any(), "Likewise");
  visit("iteration_s", s.iteration, any(), "Time once per step");
  visit("send_s", s.send, any(), "Seconds for which a message keeps its sender from computing");
  visit("send_bandwidth_per_s", s.send_bandwidth_per_s, within(at_least(0)),
        "Bytes per second by which send_s grows with the size; 0: it does not grow");
  visit("receive_s", s.receive, any(),
        "Seconds for which a message keeps its receiver from computing");
  visit("receive_bandwidth_per_s", s.receive_bandwidth_per_s, within(at_least(0)), "Likewise");
  visit("whole_first_backward", s.whole_first_backward, any(),
        "True if the first stage runs its whole backward at the place of the weight gradient");
}

template <MaybeConst<LayerCost> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Name of the layer");
  using Times = std::conditional_t<std::is_const_v<Struct>, const LayerTimes, LayerTimes>;
  visit_times(static_cast<Times&>(s), time_keys, needed(any()), visit);
  visit("parameter_bytes", s.parameters, needed(any()), "Bytes of its parameters");
  visit("activation_bytes", s.activation, needed(any()), "Bytes saved for its backward");
  visit("output_bytes", s.output, needed(any()), "Bytes of its output");
  visit("forward_peak_bytes", s.forward_peak, needed(any()), "Peak bytes during the forward");
  visit("backward_peak_bytes", s.backward_peak, needed(any()), "Peak bytes during the backward");
  visit("saves_input", s.saves_input, needed(any()), "Its backward needs its input");
  visit("saves_output", s.saves_output, needed(any()), "Its backward needs its output");
  visit("output_is_view", s.output_is_view, needed(any()),
        "Its output shares the memory of its input");
  visit("spread", s.spread, within(at_least(0)),
        "Interquartile range over the median of the times");
  visit("tied_bytes", s.tied, any(), "Bytes of the parameters that are shared with other layers");
  visit("freed_by_input_gradient_bytes", s.freed_by_input_gradient, any(),
        "Bytes of the activation that the input gradient no longer needs");
  visit("gradients_for_weights_bytes", s.gradients_for_weights, any(),
        "Bytes that the input gradient keeps for the weight gradient");
  visit("input_gradient_peak_bytes", s.input_gradient_peak, any(),
        "Peak bytes during a separate input gradient");
  visit("weight_gradient_peak_bytes", s.weight_gradient_peak, any(),
        "Peak bytes during a separate weight gradient");
  visit("forward_peak_without_graph_bytes", s.forward_peak_without_graph, any(),
        "Peak bytes during a forward that builds no autograd graph");
  visit("input_for_weights", s.input_for_weights, any(),
        "A separate weight gradient needs the layer's input");
  visit("output_gradient_for_weights", s.output_gradient_for_weights, any(),
        "A separate weight gradient needs the gradient of the output");
  visit("selective_activation_bytes", s.selective_activation, any(),
        "Bytes of the activation that selective recomputation drops");
  visit("selective_forward_s", s.selective_forward, any(), "Time to recompute them");
  visit_times(s.contended, contended_time_keys, any(), visit);
  visit("workspace_bytes", s.workspace, any(), "Bytes of workspace that its rank holds throughout");
  visit("expert_parameter_bytes", s.expert_parameters, any(),
        "Bytes of the parameters of routed experts");
  visit("tensor_all_reduces", s.tensor_all_reduces, any(),
        "Tensor-parallel all-reduces of outputs in the forward");
  visit("expert_all_to_alls", s.expert_all_to_alls, any(),
        "All-to-alls of tokens among expert-parallel ranks in the forward");
  visit("context_all_gathers", s.context_all_gathers, any(),
        "All-gathers of keys and values in the forward");
  visit("expert_loads", s.expert_loads, any(),
        "Load imbalance of the experts by expert-parallel size; empty: balanced");
}

}  // namespace pipewright::plan
