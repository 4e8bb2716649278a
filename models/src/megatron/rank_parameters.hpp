#pragma once

// The parameters that one rank holds. Those of experts are counted separately, because they are
// partitioned over fewer devices.

#include <vector>

#include "rank_stages.hpp"

namespace pipewright::models::megatron {

struct Parameters {
  long long dense = 0;  // all except the experts'
  long long experts = 0;
  long long unquantized = 0;  // among `dense`: embeddings and routers, which fp8 does not quantize
  long long all() const { return dense + experts; }
  Parameters& operator+=(const Parameters& other);
};

Parameters part_parameters(const MegatronRun& run, Part part);
/// Returns the parameters of the rank's stages, with embedding, head and predictions.
Parameters rank_parameters(const MegatronRun& run, const std::vector<RankStage>& stages);

/// Returns the parameters of all distinct shapes of product weights: with fused weight gradients,
/// one placeholder per shape is kept.
long long distinct_weights(const MegatronRun& run, const std::vector<RankStage>& stages);

}  // namespace pipewright::models::megatron
