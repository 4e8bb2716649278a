#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/predict/schedule_figures.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::python {
namespace {

using Cells = std::vector<std::vector<std::string>>;

/// Converts to torch's CSV dialect first, so that the CSV reader reports all errors.
plan::Schedule schedule_of(const Cells& ranks, const std::string& name) {
  std::string csv;
  for (const auto& cells : ranks) {
    for (std::size_t c = 0; c < cells.size(); ++c)
      csv += (c == 0 ? "" : ",") + cells[c];
    csv += "\n";
  }
  return plan::parse_csv(csv, name);
}

Cells cells_of(const plan::Schedule& schedule) {
  Cells ranks;
  for (const auto& actions : schedule.ranks)
    ranks.push_back(plan::cells(actions));
  return ranks;
}

plan::ScheduleCosts costs_of(double forward, double input_gradient, double weight_gradient,
                             double transfer) {
  for (const double time : {forward, input_gradient, weight_gradient, transfer})
    if (!(time >= 0))
      throw plan::InputError("a time of a stage is a number of seconds that is not negative");
  return plan::equal_costs({forward}, {input_gradient}, {weight_gradient}, {transfer});
}

plan::Timeline timed(const plan::Schedule& schedule, const plan::ScheduleCosts& costs) {
  return loop::timed(plan::lower(schedule), costs);
}

void bind_schedule(nb::module_& module) {
  nb::class_<plan::Schedule>(
      module, "Schedule",
      "The compute actions of each rank, in order. \"2F0\" is the forward of microbatch 0 through "
      "stage 2; B is the full backward, I and W are its parts for inputs and weights.")
      .def(
          "__init__",
          [](plan::Schedule* self, const Cells& ranks) {
            new (self) plan::Schedule(schedule_of(ranks, "schedule"));
          },
          nb::arg("ranks"),
          "Makes a schedule from the actions of each rank as strings. Raises InputError for "
          "strings that are not actions; `validate` proves the rest.")
      .def_static("from_csv", &plan::parse_csv, nb::arg("text"), nb::arg("name") = "schedule",
                  "Reads torch's compute-only CSV dialect, with one line per rank. `name` is the "
                  "name of the text in errors.")
      .def_prop_ro("ranks", &cells_of, "The actions of each rank as strings.")
      .def_prop_ro("microbatches", [](const plan::Schedule& self) { return self.microbatches; })
      .def_prop_ro("stages", [](const plan::Schedule& self) { return plan::stage_count(self); })
      .def(
          "validate", [](const plan::Schedule& self) { plan::validate(self); }, WithoutLock(),
          "Proves that each microbatch passes each stage once forward and once backward, and that "
          "no rank waits forever. Raises InputError that names rank, action and reason.")
      .def(
          "to_csv", [](const plan::Schedule& self) { return plan::to_csv(self); },
          "Returns torch's CSV dialect, which `pipewright train --schedule FILE` reads.")
      .def(
          "lower",
          [](const plan::Schedule& self, int replicas, int zero, bool recompute) {
            plan::LoweringOptions options{.replicas = replicas, .zero = zero};
            if (recompute)
              options.recompute = plan::RecomputeMode::Full;
            return plan::lower(self, options);
          },
          nb::arg("replicas") = 1, nb::arg("zero") = 0, nb::arg("recompute") = false, WithoutLock(),
          "Returns the Program: all instructions of each rank, including loads, transfers, "
          "all-reduces over replicas and optimizer steps.")
      .def(
          "timeline",
          [](const plan::Schedule& self, double forward, double input_gradient,
             double weight_gradient, double transfer) {
            return timed(self, costs_of(forward, input_gradient, weight_gradient, transfer));
          },
          nb::arg("forward") = 1.0, nb::arg("input_gradient") = 1.0,
          nb::arg("weight_gradient") = 1.0, nb::arg("transfer") = 0.0, WithoutLock(),
          "Returns the exact timeline of one iteration with these times of every stage, in "
          "seconds. Raises Infeasible with the cycle if ranks wait for each other forever.")
      .def("_repr_svg_",
           [](const plan::Schedule& self) {
             return draw::to_svg(draw::timeline_scene({timed(self, costs_of(1, 1, 1, 0))}, ""));
           })
      .def("__repr__",
           [](const plan::Schedule& self) {
             return "Schedule of " + std::to_string(self.ranks.size()) + " ranks, " +
                    std::to_string(self.microbatches) + " microbatches\n" + plan::to_string(self);
           })
      .def("__eq__", [](const plan::Schedule& self, nb::handle other) {
        return nb::isinstance<plan::Schedule>(other) && self == nb::cast<plan::Schedule&>(other);
      });
}

void bind_program(nb::module_& module) {
  nb::class_<plan::Program>(module, "Program", "All instructions of each rank, in order.")
      .def_prop_ro(
          "ranks",
          [](const plan::Program& self) { return to_python(plan::to_json(self)["ranks"]); },
          "The instructions of each rank as strings, such as \"0SEND_F1\".")
      .def("to_dict", [](const plan::Program& self) { return to_python(plan::to_json(self)); })
      .def(
          "validate", [](const plan::Program& self) { plan::validate(self); }, WithoutLock(),
          "Proves that the Program can run. Raises InputError or Infeasible with rank and "
          "instruction.")
      .def(
          "timeline",
          [](const plan::Program& self, double forward, double input_gradient,
             double weight_gradient, double transfer) {
            return loop::timed(self, costs_of(forward, input_gradient, weight_gradient, transfer));
          },
          nb::arg("forward") = 1.0, nb::arg("input_gradient") = 1.0,
          nb::arg("weight_gradient") = 1.0, nb::arg("transfer") = 0.0, WithoutLock(),
          "Returns the timeline of one iteration with these times of every stage, in seconds.");
}

}  // namespace

void bind_schedules(nb::module_& module) {
  bind_program(module);
  bind_schedule(module);
  module.def(
      "schedules", [] { return plan::schedule_names(); },
      "Returns the names that `schedule` knows.");
  module.def(
      "schedule",
      [](const std::string& name, int ranks, int microbatches, int chunks, int group,
         std::optional<int> memory_units) {
        return plan::make_schedule({.name = name,
                                    .ranks = ranks,
                                    .microbatches = microbatches,
                                    .chunks = chunks,
                                    .group = group,
                                    .memory_units = memory_units});
      },
      nb::arg("name"), nb::kw_only(), nb::arg("ranks"), nb::arg("microbatches"),
      nb::arg("chunks") = 0, nb::arg("group") = 0, nb::arg("memory_units") = nb::none(),
      WithoutLock(),
      "Makes a built-in schedule. `chunks`: stages per rank; 0: as few as possible. Raises "
      "InputError that names the rule and the nearest valid sizes.");
}

}  // namespace pipewright::python
