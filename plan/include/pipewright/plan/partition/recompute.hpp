#pragma once

// What a layer's backward computes again instead of having it kept.

#include <string>
#include <vector>

namespace pipewright::plan {

/// Nothing, the layer's whole forward from its input, or only its attention core, which is large to
/// keep and quick to compute (Korthikanti et al., 2205.05198).
enum class RecomputeMode { None, Full, Selective };

/// The words of files and options, in the order of the enumeration: none, full, selective.
const std::vector<std::string>& recompute_modes();
std::string to_string(RecomputeMode mode);
/// Throws InputError where it is none of these words.
RecomputeMode recompute_mode(const std::string& word);

}  // namespace pipewright::plan
