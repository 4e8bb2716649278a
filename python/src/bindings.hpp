#pragma once

// The bindings, one group per source, and their shared helpers: JSON as Python values, and
// interruptible work.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <functional>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/stopped.hpp"

namespace pipewright::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_schedules(nb::module_& module);
void bind_timelines(nb::module_& module);
void bind_scenarios(nb::module_& module);
void bind_plans(nb::module_& module);

/// Convert between JSON and dictionaries, lists, numbers, strings and None. Throw nb::type_error
/// for values that JSON cannot represent.
nb::object to_python(const plan::Json& json);
plan::Json to_json(nb::handle value);

/// Runs long work without the interpreter's lock. `work` calls its argument from time to time, from
/// any thread. If that returns false, the work must end or throw Stopped: the user pressed Ctrl-C,
/// or `progress` raised an exception. `progress` is None, or is called with the amount done and the
/// total.
void run_long(nb::handle progress, const std::function<void(const plan::ProgressCallback&)>& work);

/// Releases the interpreter's lock during a function that may take long and uses no Python objects.
using WithoutLock = nb::call_guard<nb::gil_scoped_release>;

}  // namespace pipewright::python
