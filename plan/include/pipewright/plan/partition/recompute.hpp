#pragma once

// Activation recomputation modes of a layer's backward.

#include <string>
#include <vector>

namespace pipewright::plan {

/// None; Full, which recomputes the layer's whole forward from its input; or Selective, only its
/// attention core, whose activations are large but quick to compute (Korthikanti et al.,
/// 2205.05198).
enum class RecomputeMode { None, Full, Selective };

/// Names in files and options, in the order of the enumeration: none, full, selective.
const std::vector<std::string>& recompute_modes();
std::string to_string(RecomputeMode mode);
/// Throws InputError for any other word.
RecomputeMode recompute_mode(const std::string& word);

}  // namespace pipewright::plan
