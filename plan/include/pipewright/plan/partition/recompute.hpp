#pragma once

// Activation recomputation modes of a layer's backward.

#include <string>
#include <vector>

namespace pipewright::plan {

/// Selects what is recomputed: nothing (None), the layer's whole forward from its input (Full), or
/// only its attention core (Selective), whose activations are large to keep and quick to recompute
/// (Korthikanti et al., 2205.05198).
enum class RecomputeMode { None, Full, Selective };

/// Names in files and options, in the order of the enumeration: none, full, selective.
const std::vector<std::string>& recompute_modes();
std::string to_string(RecomputeMode mode);
/// Returns the mode of that name. Throws InputError for any other word.
RecomputeMode recompute_mode(const std::string& word);

}  // namespace pipewright::plan
