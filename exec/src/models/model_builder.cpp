#include "pipewright/exec/models/model_builder.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/catalogue.hpp"

namespace pipewright::exec {

#define DECLARE(Shape) \
  template <>          \
  const ModelBuilder& builder_of<plan::Shape>();
PIPEWRIGHT_MODELS(DECLARE)
#undef DECLARE

const ModelBuilder& builder_of(const plan::ModelShape& shape) {
#define RETURN_IF(Shape)                                          \
  if (&shape.descriptor() == &plan::descriptor_of<plan::Shape>()) \
    return builder_of<plan::Shape>();
  PIPEWRIGHT_MODELS(RETURN_IF)
#undef RETURN_IF
  throw plan::InputError(
      fmt::format("nothing here builds the layers of the model {}, which is planned and predicted "
                  "only: `pipewright simulate` does that",
                  shape.kind()));
}

}  // namespace pipewright::exec
