#pragma once

// Selects the calls of CUDA's runtime and driver that submit work to a device. There are ten times
// as many others, which would all be recorded.

#include <string>
#include <string_view>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace pipewright::profiler {

/// Returns true if a call launches kernels or graphs, copies, or sets memory.
bool gives_work(std::string_view call);
/// Returns "cudaMemcpyAsync" for "cudaMemcpyAsync_ptsz_v7000": CUPTI distinguishes versions of a
/// call.
std::string without_version(std::string_view call);

/// The calls that this CUPTI knows, by its numbers. Newer versions know more calls.
struct KnownCalls {
  std::vector<CUpti_CallbackId> giving_work, others;
};
KnownCalls known_calls(const CuptiLibrary& cupti, CUpti_CallbackDomain domain);

}  // namespace pipewright::profiler
