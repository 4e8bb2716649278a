#pragma once

// A source of records that uses a given CUPTI library.

#include <functional>
#include <memory>

#include "cupti/cupti_library.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {

/// Gives a device some work and waits until it is done.
using GiveWork = std::function<void()>;

/// Keeps a reference to `cupti`. Throws InputError as `cupti_source` does, except for a missing
/// GPU. Also throws if the work of `try_it`, if it is set, is recorded without the call that
/// submitted it.
std::unique_ptr<ActivitySource> watch_by(const CuptiLibrary& cupti, const GiveWork& try_it = {});

}  // namespace pipewright::profiler
