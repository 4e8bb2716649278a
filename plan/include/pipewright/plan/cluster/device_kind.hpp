#pragma once

// The GPU model within a longer device name: "A100" in "A100-80GB (presumably)", "GB200" in "NVIDIA
// Blackwell GPU (GB200)".

#include <string>
#include <string_view>

namespace pipewright::plan {

/// Returns the first run of letters followed by two or more digits, in upper case; empty if there
/// is none.
std::string device_kind(std::string_view name);

}  // namespace pipewright::plan
