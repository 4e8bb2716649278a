#include "explain/nvtx_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace pipewright::trace {
namespace {

/// Ranges of Megatron-LM with --nvtx-ranges: module and function. All ranks call all of these
/// functions; at the ends of the pipeline some do nothing.
constexpr std::string_view megatron_passing = "megatron.core.pipeline_parallel.p2p_communication.";
constexpr std::string_view megatron_interleaving =
    "megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_with_interleaving";

struct NvtxFunction {
  std::string_view end;  // of the range's name
  NvtxMeaning meaning;
};
using NvtxKind = NvtxMeaning::Kind;

/// DeepSpeed's ranges are `__qualname__`s, including those of functions that its pipeline engines
/// call.
const std::array<NvtxFunction, 12> nvtx_functions{{
    {"PipelineEngine._exec_forward_pass", {NvtxKind::Range, {RangeKind::ForwardCall, {}}}},
    {"PipelineEngine._exec_backward_pass", {NvtxKind::Range, {RangeKind::BackwardCall, {}}}},
    {"DeepSpeedEngine.forward", {NvtxKind::Range, {RangeKind::ForwardCall, {}}}},
    {"DeepSpeedEngine.backward", {NvtxKind::Range, {RangeKind::BackwardCall, {}}}},
    {"PipelineEngine._exec_send_activations", {NvtxKind::Transfer, {}, OperatorKind::Send}},
    {"PipelineEngine._exec_send_grads", {NvtxKind::Transfer, {}, OperatorKind::Send}},
    {"PipelineEngine._exec_recv_activations", {NvtxKind::Transfer, {}, OperatorKind::Receive}},
    {"PipelineEngine._exec_recv_grads", {NvtxKind::Transfer, {}, OperatorKind::Receive}},
    {"PipelineEngine._exec_optimizer_step", {NvtxKind::Range, {RangeKind::Optimizer, {}}}},
    {"schedules.forward_step", {NvtxKind::Range, {RangeKind::ForwardCall, {}}}},
    {"schedules.backward_step", {NvtxKind::Range, {RangeKind::BackwardCall, {}}}},
    {"schedules.forward_step_helper", {NvtxKind::Interleaving, {}}},
}};

}  // namespace

NvtxName nvtx_name(std::string_view text) {
  NvtxName name;
  constexpr std::string_view sequence = ", seq = ";
  if (const auto at = text.find(sequence); at != std::string_view::npos) {
    std::int64_t number = 0;
    const auto* const begin = text.data() + at + sequence.size();
    if (std::from_chars(begin, text.data() + text.size(), number).ec == std::errc() && number >= 0)
      name.sequence = number;
  }
  for (const std::string_view mark :
       {sequence, std::string_view(", op_id = "), std::string_view(", sizes = ")})
    text = text.substr(0, text.find(mark));
  name.bare = text;
  return name;
}

std::optional<NvtxMeaning> nvtx_meaning(const NvtxName& name) {
  if (const auto range = named_range(name.bare))
    return NvtxMeaning{NvtxKind::Range, *range};
  if (name.bare.starts_with(megatron_passing))
    return NvtxMeaning{NvtxKind::Range,
                       {RangeKind::Passing, name.bare.substr(megatron_passing.size())}};
  if (name.bare.starts_with(megatron_interleaving))
    return NvtxMeaning{NvtxKind::Interleaving};
  if (name.bare.find("::") != std::string_view::npos || name.sequence)
    return NvtxMeaning{NvtxKind::Operator};
  for (const NvtxFunction& own : nvtx_functions)
    if (name.bare.ends_with(own.end))
      return own.meaning;
  return {};
}

}  // namespace pipewright::trace
