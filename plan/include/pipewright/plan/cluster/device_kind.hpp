#pragma once

// Which kind of GPU is meant, whatever else a name says: "A100" of "A100-80GB (presumably)",
// "GB200" of "NVIDIA Blackwell GPU (GB200)".

#include <string>
#include <string_view>

namespace pipewright::plan {

/// The first word of letters and two or more digits behind them; empty where there is none.
std::string device_kind(std::string_view name);

}  // namespace pipewright::plan
