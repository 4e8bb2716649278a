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
  visit(keys[0], s.forward, rule, "Of the forward");
  visit(keys[1], s.input_gradient, rule, "Of the backward's part that leads to the input");
  visit(keys[2], s.weight_gradient, rule, "Of the rest of the backward");
  visit(keys[3], s.splitting, any(), "That these two take longer than the backward in one go");
  visit(keys[4], s.optimizer_step, rule, "For the layer's parameters, once per step");
}

template <MaybeConst<ShardTraffic> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("times", s.times, within(at_least(0)), "For a microbatch.");
  visit("bytes", s.bytes, any(), "Of each shard, each time.");
  visit("backward_times", s.backward_times, within(at_least(-1)), "In its backward; -1: as often.");
}

template <MaybeConst<ExpertLoad> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within({.least = 2, .most = size_range.most})),
        "That share out the experts.");
  visit("busiest", s.busiest, needed(within(at_least(1))), "The most that one has over the mean.");
}

template <MaybeConst<RuntimeCost> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Of the runtime, with its version");
  visit("forward_s", s.forward, any(), "Of an action, beside its layers");
  visit("backward_s", s.backward, any(), "Likewise");
  visit("input_gradient_s", s.input_gradient, any(), "Likewise");
  visit("weight_gradient_s", s.weight_gradient, any(), "Likewise");
  visit("iteration_s", s.iteration, any(), "Once for each step");
  visit("send_s", s.send, any(), "That a message keeps its sender from computing");
  visit("send_bandwidth_per_s", s.send_bandwidth_per_s, within(at_least(0)),
        "Bytes per second, of what send_s grows by; 0: by nothing");
  visit("receive_s", s.receive, any(), "The same of its receiver");
  visit("receive_bandwidth_per_s", s.receive_bandwidth_per_s, within(at_least(0)), "Likewise");
  visit("whole_first_backward", s.whole_first_backward, any(),
        "The first stage's backward runs whole, where the second of its parts stands");
}

template <MaybeConst<LayerCost> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Of the layer");
  using Times = std::conditional_t<std::is_const_v<Struct>, const LayerTimes, LayerTimes>;
  visit_times(static_cast<Times&>(s), time_keys, needed(any()), visit);
  visit("parameter_bytes", s.parameters, needed(any()), "Of its parameters");
  visit("activation_bytes", s.activation, needed(any()), "Kept for its backward");
  visit("output_bytes", s.output, needed(any()), "Handed to the layer after");
  visit("forward_peak_bytes", s.forward_peak, needed(any()), "Most alive during the forward");
  visit("backward_peak_bytes", s.backward_peak, needed(any()), "Most alive during the backward");
  visit("saves_input", s.saves_input, needed(any()), "Its backward needs its input");
  visit("saves_output", s.saves_output, needed(any()), "Its backward needs its output");
  visit("output_is_view", s.output_is_view, needed(any()), "Its output is its input's memory");
  visit("spread", s.spread, within(at_least(0)), "Interquartile range over median of the times");
  visit("tied_bytes", s.tied, any(), "Of the parameters: shared with other layers");
  visit("freed_by_input_gradient_bytes", s.freed_by_input_gradient, any(),
        "Of the activation: what the input gradient is done with");
  visit("gradients_for_weights_bytes", s.gradients_for_weights, any(),
        "What the input gradient leaves to the weight gradient");
  visit("input_gradient_peak_bytes", s.input_gradient_peak, any(),
        "Most alive during a lone input gradient");
  visit("weight_gradient_peak_bytes", s.weight_gradient_peak, any(),
        "Most alive during a lone weight gradient");
  visit("forward_peak_without_graph_bytes", s.forward_peak_without_graph, any(),
        "Most alive during a forward that builds no graph");
  visit("input_for_weights", s.input_for_weights, any(),
        "A lone weight gradient needs the layer's input");
  visit("output_gradient_for_weights", s.output_gradient_for_weights, any(),
        "A lone weight gradient needs the gradient of the output");
  visit("selective_activation_bytes", s.selective_activation, any(),
        "Of the activation: what selective recomputation drops");
  visit("selective_forward_s", s.selective_forward, any(), "To compute that again");
  visit_times(s.contended, contended_time_keys, any(), visit);
  visit("workspace_bytes", s.workspace, any(), "That its rank has throughout");
  visit("expert_parameter_bytes", s.expert_parameters, any(),
        "Of the parameters: what routed experts have");
  visit("tensor_sums", s.tensor_sums, any(), "Of outputs among shards, in the forward");
  visit("expert_exchanges", s.expert_exchanges, any(), "Of tokens among experts, likewise");
  visit("context_gathers", s.context_gathers, any(), "Of keys and values, likewise");
  visit("expert_loads", s.expert_loads, any(),
        "How unevenly tokens come to ranks that share out the experts; empty: evenly");
}

}  // namespace pipewright::plan
