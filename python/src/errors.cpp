#include "bindings.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::python {

void bind_errors(nb::module_& module) {
  nb::exception<plan::InputError>(module, "InputError", PyExc_ValueError).attr("__doc__") =
      "Raised for arguments that cannot be used. The message names file, field and value, as on "
      "the command line.";
  nb::exception<plan::Infeasible>(module, "Infeasible", PyExc_ValueError).attr("__doc__") =
      "Raised if a request is impossible, such as for a deadlock or too little memory. The message "
      "names the obstacle.";
}

}  // namespace pipewright::python
