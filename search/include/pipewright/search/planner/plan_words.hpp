#pragma once

// Descriptions of plans: the same vocabulary for the plans of every search.

#include <string>

#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::search {

/// Returns "tp 8, pp 16, dp 8, microbatch 1, 6 chunks, layers 19×7 12, ZeRO 1, sequence parallel".
/// `has_experts`: the model is a mixture of experts, so its expert parallelism is named.
std::string cut_words(const plan::Cut& cut, int layers, bool has_experts);

/// Lists each axis along which `to` differs from `from`: "pp 16 instead of 8, ZeRO 1 instead of 0".
/// Returns an empty string for equal cuts. The model has `layers`.
std::string changes_between(const plan::Cut& from, const plan::Cut& to, int layers);

}  // namespace pipewright::search
