#pragma once

// A source of records that watches by a CUPTI of one's choice.

#include <functional>
#include <memory>

#include "cupti/cupti_library.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {

/// Gives a device a piece of work and waits until it is done.
using GiveWork = std::function<void()>;

/// `cupti` must outlive it. Throws InputError as `cupti_source` does, but for want of a GPU; also
/// where the work of `try_it`, if it is set, does not come back with the call that asked for it.
std::unique_ptr<ActivitySource> watch_by(const CuptiLibrary& cupti, const GiveWork& try_it = {});

}  // namespace pipewright::profiler
