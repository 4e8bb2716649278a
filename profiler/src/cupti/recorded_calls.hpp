#pragma once

// Which calls of CUDA's runtime and driver give a device work. There are ten times as many others,
// and all would be recorded.

#include <string>
#include <string_view>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace pipewright::profiler {

/// Whether a call launches kernels or graphs, copies, or sets memory.
bool gives_work(std::string_view call);
/// "cudaMemcpyAsync" of "cudaMemcpyAsync_ptsz_v7000": CUPTI tells versions of a call apart.
std::string without_version(std::string_view call);

/// As this CUPTI numbers them. Newer ones know more of them.
struct KnownCalls {
  std::vector<CUpti_CallbackId> giving_work, others;
};
KnownCalls known_calls(const CuptiLibrary& cupti, CUpti_CallbackDomain domain);

}  // namespace pipewright::profiler
