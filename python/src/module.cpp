#include "bindings.hpp"

NB_MODULE(_pipewright, module) {
  using namespace pipewright::python;
  module.doc() = "Pipewright's values and functions: see the package pipewright.";
  module.attr("__version__") = PIPEWRIGHT_VERSION;
  bind_errors(module);
  bind_timelines(module);
  bind_schedules(module);
  bind_scenarios(module);
  bind_plans(module);
}
