#include "pipewright/plan/cluster/machine.hpp"

#include <fmt/format.h>

namespace pipewright::plan {

const std::vector<ConstantRule>& constant_rules() {
  using C = MachineConstants;
  using enum ConstantRule::Use;
  static const std::vector<ConstantRule> rules{
      {"gemm_efficiency", &C::gemm_efficiency, 0.05, 1, 0.15, Physics,
       "Rate of a very large matrix product over the device's peak."},
      {"gemm_saturation", &C::gemm_saturation, 1, 1e5, 0.5, Physics,
       "A product of m·k·n takes 1 + this / cbrt(m·k·n) times longer than at that rate; by so many "
       "times this as the device has more FLOPs a byte of its memory's bandwidth than an A100."},
      {"core_efficiency", &C::core_efficiency, 0.02, 2, 0.3, Physics,
       "Rate of attention's two products over that of very large ones; a causal mask may leave out "
       "half of them."},
      {"narrow_efficiency", &C::narrow_efficiency, 0.1, 3, 0.1, Physics,
       "Rate of very large products of 8 bits or fewer over their peak, over that of products of "
       "16 "
       "bits."},
      {"memory_efficiency", &C::memory_efficiency, 0.02, 1, 0.3, Physics,
       "Rate of memory-bound work over the device's memory bandwidth."},
      {"collective_call_s", &C::collective_call_s, 1e-7, 0.1, 0.6, Physics,
       "Seconds that a sum in a layer costs beside what moving its bytes takes."},
      {"exposed_sums", &C::exposed_sums, 0.01, 1, 0.5, Physics,
       "Share of the time of sums in a layer that is left where they overlap with its products."},
      {"exposed_reduction", &C::exposed_reduction, 0.01, 1, 0.5, Physics,
       "Share of the time of gradients' sums, and of gathering parameters, that is left where they "
       "overlap with passes."},
      {"exchange_efficiency", &C::exchange_efficiency, 0.01, 1, 0.5, Physics,
       "Rate of exchanging tokens among experts within a node over the link's bandwidth."},
      {"layer_launch_s", &C::layer_launch_s, 1e-6, 1, 0.5, Physics,
       "Host seconds of a layer, forward and backward: it is no faster, however small."},
      {"tensor_launch_s", &C::tensor_launch_s, 1e-7, 1, 0.8, Physics,
       "Host seconds more where a layer is cut among devices."},
      {"wide_tensor_launch_s", &C::wide_tensor_launch_s, 1e-7, 1, 0.8, Physics,
       "Host seconds more where it is cut among eight or more."},
      {"odd_scores_launch_s", &C::odd_scores_launch_s, 1e-7, 1, 0.8, Physics,
       "Host seconds more where microbatch times heads of a device is no multiple of 4: the "
       "softmax is not fused."},
      {"narrow_heads_launch_s", &C::narrow_heads_launch_s, 1e-7, 1, 0.8, Physics,
       "Host seconds more where a head has fewer than 128 channels."},
      {"overlap_power", &C::overlap_power, 1, 20, 0.4, Physics,
       "A layer takes (device^p + host^p)^(1/p): 1 is a sum, a large p the greater of the two."},
      {"stage_launch_s", &C::stage_launch_s, 1e-6, 1, 0.5, Physics,
       "Host seconds of the head for a microbatch; the embedding takes half of them."},
      {"odd_vocabulary", &C::odd_vocabulary, 1, 20, 0.3, Physics,
       "How many times longer the head's products take over an odd vocabulary that is not cut."},
      {"hop_efficiency", &C::hop_efficiency, 1e-3, 1, 0.7, Both,
       "Rate of a transfer between stages within a node over the link's bandwidth."},
      {"uplink_waiting", &C::uplink_waiting, 1e-3, 1e3, 1.2, Physics,
       "How long a transfer between nodes waits for others, in transfers at the node's bandwidth, "
       "for each further pipeline of its node and each node of its stage beyond the second."},
      {"network_efficiency", &C::network_efficiency, 0.01, 1, 0.6, Physics,
       "Rate of sums between nodes over the bandwidth between nodes."},
      {"reduction_efficiency", &C::reduction_efficiency, 0.1, 10, 0.05, Schedule,
       "Rate of the gradients' sum over what the table of sums says."},
      {"bulk_reduction", &C::bulk_reduction, 0.1, 10, 0.05, Schedule,
       "Bytes per second of sums larger than the table, over its last bus bandwidth."},
      {"optimizer_efficiency", &C::optimizer_efficiency, 0.02, 1, 0.3, Both,
       "Rate of the optimizer's step over the device's memory bandwidth."},
      {"iteration_s", &C::iteration_s, 1e-6, 1, 1, Schedule, "Seconds once in each iteration."},
      {"context_bytes", &C::context_bytes, 1e3, 1e11, 0.7, Memory,
       "At the peak of memory, beside what stands and what microbatches keep: bytes once."},
      {"token_bytes", &C::token_bytes, 0.1, 1e3, 0.5, Memory,
       "Bytes then of each activation of a layer's width."},
      {"feed_forward_bytes", &C::feed_forward_bytes, 0.1, 1e3, 0.3, Memory,
       "Bytes then of each activation of the feed-forward."},
      {"weight_bytes", &C::weight_bytes, 0.1, 1e3, 0.2, Memory,
       "Bytes then of each parameter of a layer's largest matrix: its gradient, before it is "
       "added."},
      {"logit_bytes", &C::logit_bytes, 0.1, 1e3, 0.5, Memory, "Bytes then of each logit."},
      {"head_gradient_bytes", &C::head_gradient_bytes, 0.1, 1e3, 0.5, Memory,
       "Bytes then of each parameter of the head."},
      {"routed_token_bytes", &C::routed_token_bytes, 0.1, 1e3, 0.5, Memory,
       "Bytes then of each activation on its way to experts."},
      {"latent_head_bytes", &C::latent_head_bytes, 0.1, 1e3, 0.5, Memory,
       "Bytes then of each activation of latent attention's heads."}};
  return rules;
}

MachineSpread::MachineSpread() {
  for (const ConstantRule& rule : constant_rules())
    this->*rule.member = rule.spread;
}

std::string fault_of(const ReductionTable& table) {
  const std::size_t rows = table.ranks.size();
  if (table.bytes.size() != rows || table.seconds.size() != rows)
    return fmt::format("{} ranks, {} bytes and {} seconds: the columns need one length", rows,
                       table.bytes.size(), table.seconds.size());
  for (std::size_t row = 1; row < rows; ++row)
    if (table.ranks[row] == table.ranks[row - 1] && table.bytes[row] <= table.bytes[row - 1])
      return fmt::format("row {} has {} bytes behind {}: they must rise for one number of ranks",
                         row, table.bytes[row], table.bytes[row - 1]);
  return {};
}

}  // namespace pipewright::plan
