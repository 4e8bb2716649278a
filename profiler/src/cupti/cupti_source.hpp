#pragma once

// A source of records that watches by a CUPTI of one's choice.

#include <memory>

#include "cupti/cupti_library.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {

/// `cupti` must outlive it. Throws InputError as `cupti_source` does, but for want of a GPU.
std::unique_ptr<ActivitySource> watch_by(const CuptiLibrary& cupti);

}  // namespace pipewright::profiler
