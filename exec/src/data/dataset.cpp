#include "pipewright/exec/data/dataset.hpp"

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

at::Tensor Dataset::input(int, int) const {
  throw plan::InputError("this dataset gives several input tensors: ask for `inputs`");
}

at::Tensor Dataset::target(int, int) const {
  throw plan::InputError("this dataset gives several target tensors: ask for `targets`");
}

}  // namespace pipewright::exec
