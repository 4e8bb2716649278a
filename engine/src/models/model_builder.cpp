#include "pipewright/engine/models/model_builder.hpp"

#include <fmt/format.h>

#include <map>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/catalog.hpp"

namespace pipewright::engine {

#define DECLARE(Shape) \
  template <>          \
  const ModelBuilder& builder_of<plan::Shape>();
PIPEWRIGHT_MODELS(DECLARE)
#undef DECLARE

namespace {

std::map<const plan::ModelDescriptor*, ModelBuilder>& added() {
  static std::map<const plan::ModelDescriptor*, ModelBuilder> builders;
  return builders;
}

}  // namespace

void add_builder(const plan::ModelDescriptor& model, ModelBuilder builder) {
  added()[&model] = std::move(builder);
}

const ModelBuilder& builder_of(const plan::ModelShape& shape) {
  if (const auto own = added().find(&shape.descriptor()); own != added().end())
    return own->second;
#define RETURN_IF(Shape)                                          \
  if (&shape.descriptor() == &plan::descriptor_of<plan::Shape>()) \
    return builder_of<plan::Shape>();
  PIPEWRIGHT_MODELS(RETURN_IF)
#undef RETURN_IF
  throw plan::InputError(fmt::format(
      "the model {} cannot be trained, only planned and predicted: use `pipewright simulate`",
      shape.kind()));
}

}  // namespace pipewright::engine
