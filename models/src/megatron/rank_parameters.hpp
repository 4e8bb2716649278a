#pragma once

// The parameters that one rank holds, apart by who shares them out: the experts' are on fewer
// devices than the others.

#include <vector>

#include "rank_stages.hpp"

namespace pipewright::models::megatron {

struct Parameters {
  long long dense = 0;  // all but the experts'
  long long experts = 0;
  long long unquantized = 0;  // of the dense: embeddings and routers, which 8 bits leave alone
  long long all() const { return dense + experts; }
  Parameters& operator+=(const Parameters& other);
};

Parameters part_parameters(const MegatronRun& run, Part part);
/// Of the rank's stages, with embedding, head and predictions.
Parameters rank_parameters(const MegatronRun& run, const std::vector<RankStage>& stages);

/// Weights of products, by shape and without repeats, in parameters: what is kept of each shape
/// once where weight gradients are fused.
long long distinct_weights(const MegatronRun& run, const std::vector<RankStage>& stages);

}  // namespace pipewright::models::megatron
