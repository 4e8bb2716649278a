#pragma once

// What the sources of this folder bind, each an idea, and what they share: JSON as Python's values,
// and work that can be interrupted.

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

/// Dictionaries, lists, numbers, texts, None; and the way back. Throws nb::type_error for what JSON
/// has no word for.
nb::object to_python(const plan::Json& json);
plan::Json to_json(nb::handle value);

/// Long work, without the interpreter's lock. `work` calls what it is given now and then, from
/// whatever thread; when that answers false, it ends, or throws Stopped: Ctrl-C was pressed, or
/// `progress` (None, or called with how much is done, and of how much) has thrown.
void run_long(nb::handle progress, const std::function<void(const plan::GoesOn&)>& work);

/// Of a function that may take a while and touches nothing of Python's: other threads run
/// meanwhile.
using WithoutLock = nb::call_guard<nb::gil_scoped_release>;

}  // namespace pipewright::python
