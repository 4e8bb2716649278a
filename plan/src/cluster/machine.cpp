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
       "A product of m·k·n takes 1 + this / cbrt(m·k·n) times longer than at that rate. The "
       "constant is multiplied by the device's FLOPs per byte of memory bandwidth, relative to an "
       "A100."},
      {"core_efficiency", &C::core_efficiency, 0.02, 2, 0.3, Physics,
       "Rate of attention's two products over that of very large ones. A causal mask may leave out "
       "half of them."},
      {"low_precision_efficiency", &C::low_precision_efficiency, 0.1, 3, 0.1, Physics,
       "Rate of very large products of 8 bits or fewer over their peak, relative to that of 16-bit "
       "products."},
      {"memory_efficiency", &C::memory_efficiency, 0.02, 1, 0.3, Physics,
       "Rate of memory-bound work over the device's memory bandwidth."},
      {"collective_call_s", &C::collective_call_s, 1e-7, 0.1, 0.6, Physics,
       "Seconds that a collective in a layer costs in addition to moving its bytes."},
      {"exposed_all_reduce", &C::exposed_all_reduce, 0.01, 1, 0.5, Physics,
       "Share of a layer's collectives that is exposed where they overlap with its products."},
      {"exposed_reduction", &C::exposed_reduction, 0.01, 1, 0.5, Physics,
       "Share of gradient reduction and parameter gathering that is exposed where they overlap "
       "with passes."},
      {"all_to_all_efficiency", &C::all_to_all_efficiency, 0.01, 1, 0.5, Physics,
       "Rate of the all-to-all of tokens among experts within a node over the link's bandwidth."},
      {"layer_launch_s", &C::layer_launch_s, 1e-6, 1, 0.5, Physics,
       "Host seconds of a layer, forward and backward, which is a lower bound on its time."},
      {"tensor_launch_s", &C::tensor_launch_s, 1e-7, 1, 0.8, Physics,
       "Additional host seconds of a layer with tensor parallelism."},
      {"wide_tensor_launch_s", &C::wide_tensor_launch_s, 1e-7, 1, 0.8, Physics,
       "Additional host seconds with a tensor-parallel size of eight or more."},
      {"unfused_softmax_launch_s", &C::unfused_softmax_launch_s, 1e-7, 1, 0.8, Physics,
       "Additional host seconds if microbatch times heads of a device is not a multiple of 4, so "
       "that the softmax is not fused."},
      {"small_heads_launch_s", &C::small_heads_launch_s, 1e-7, 1, 0.8, Physics,
       "Additional host seconds if a head has fewer than 128 channels."},
      {"overlap_power", &C::overlap_power, 1, 20, 0.4, Physics,
       "A layer takes (device^p + host^p)^(1/p): 1 gives the sum, a large p the maximum."},
      {"stage_launch_s", &C::stage_launch_s, 1e-6, 1, 0.5, Physics,
       "Host seconds of the head for a microbatch; the embedding takes half of them."},
      {"odd_vocabulary_slowdown", &C::odd_vocabulary_slowdown, 1, 20, 0.3, Physics,
       "How many times longer the head's products take with an odd vocabulary that is not "
       "partitioned."},
      {"transfer_efficiency", &C::transfer_efficiency, 1e-3, 1, 0.7, Both,
       "Rate of a transfer between stages within a node over the link's bandwidth."},
      {"uplink_contention", &C::uplink_contention, 1e-3, 1e3, 1.2, Physics,
       "Time that a transfer between nodes waits for others, in transfers at the node's bandwidth, "
       "for each further pipeline of its node and each node of its stage beyond the second."},
      {"network_efficiency", &C::network_efficiency, 0.01, 1, 0.6, Physics,
       "Rate of collectives between nodes over the bandwidth between nodes."},
      {"reduction_efficiency", &C::reduction_efficiency, 0.1, 10, 0.05, Schedule,
       "Rate of the gradients' all-reduce over the rate in the table of reductions."},
      {"large_reduction_efficiency", &C::large_reduction_efficiency, 0.1, 10, 0.05, Schedule,
       "Bytes per second of all-reduces larger than the table, over its last bus bandwidth."},
      {"optimizer_efficiency", &C::optimizer_efficiency, 0.02, 1, 0.3, Both,
       "Rate of the optimizer's step over the device's memory bandwidth."},
      {"iteration_s", &C::iteration_s, 1e-6, 1, 1, Schedule, "Seconds once per iteration."},
      {"context_bytes", &C::context_bytes, 1e3, 1e11, 0.7, Memory,
       "At the peak of memory, in addition to static memory and saved activations: bytes once."},
      {"token_bytes", &C::token_bytes, 0.1, 1e3, 0.5, Memory,
       "At the peak of memory: bytes of each activation of a layer's width."},
      {"feed_forward_bytes", &C::feed_forward_bytes, 0.1, 1e3, 0.3, Memory,
       "At the peak of memory: bytes of each activation of the feed-forward."},
      {"weight_bytes", &C::weight_bytes, 0.1, 1e3, 0.2, Memory,
       "At the peak of memory: bytes of each parameter of a layer's largest matrix, for its "
       "gradient before it "
       "is accumulated."},
      {"logit_bytes", &C::logit_bytes, 0.1, 1e3, 0.5, Memory,
       "At the peak of memory: bytes of each logit."},
      {"head_gradient_bytes", &C::head_gradient_bytes, 0.1, 1e3, 0.5, Memory,
       "At the peak of memory: bytes of each parameter of the head."},
      {"routed_token_bytes", &C::routed_token_bytes, 0.1, 1e3, 0.5, Memory,
       "At the peak of memory: bytes of each activation that is routed to experts."},
      {"latent_head_bytes", &C::latent_head_bytes, 0.1, 1e3, 0.5, Memory,
       "At the peak of memory: bytes of each activation of latent attention's heads."}};
  return rules;
}

MachineSpread::MachineSpread() {
  for (const ConstantRule& rule : constant_rules())
    this->*rule.member = rule.spread;
}

std::string fault_of(const ReductionTable& table) {
  const std::size_t rows = table.ranks.size();
  if (table.bytes.size() != rows || table.seconds.size() != rows)
    return fmt::format("{} ranks, {} bytes and {} seconds: the columns must have the same length",
                       rows, table.bytes.size(), table.seconds.size());
  for (std::size_t row = 1; row < rows; ++row)
    if (table.ranks[row] == table.ranks[row - 1] && table.bytes[row] <= table.bytes[row - 1])
      return fmt::format(
          "row {} has {} bytes after {}: sizes must increase within one number of ranks", row,
          table.bytes[row], table.bytes[row - 1]);
  return {};
}

}  // namespace pipewright::plan
