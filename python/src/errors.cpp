#include "bindings.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::python {

void bind_errors(nb::module_& module) {
  nb::exception<plan::InputError>(module, "InputError", PyExc_ValueError).attr("__doc__") =
      "What was given cannot be used. Its text names file, field and value, as on the command "
      "line.";
  nb::exception<plan::Infeasible>(module, "Infeasible", PyExc_ValueError).attr("__doc__") =
      "What was asked for cannot be: a deadlock, over memory. Its text names what stands in the "
      "way.";
}

}  // namespace pipewright::python
