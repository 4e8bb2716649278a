// The models that plan describes and engine builds: all models in the list, and odd sizes.

#include <ATen/ATen.h>

#include "exec/support/small_gpt.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/measured_model.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "support/catch.hpp"
#include "support/custom_model.hpp"
#include "support/error_of.hpp"

namespace models_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

constexpr int batch = 2;

at::Tensor zeros(const plan::SampleTensor& tensor) {
  std::vector<std::int64_t> sizes{batch};
  sizes.insert(sizes.end(), tensor.shape.begin(), tensor.shape.end());
  return at::zeros(sizes, tensor.is_index ? at::kLong : at::kFloat);
}

std::int64_t parameters_of(const Layer& layer) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : layer.parameters())
    count += parameter.numel();
  return count;
}

/// Returns the shape without the batch. For several tensors, their number and their common shape.
std::vector<int> shape_of(const Tensors& values) {
  std::vector<int> shape(values.front().sizes().begin() + 1, values.front().sizes().end());
  for (const at::Tensor& value : values)
    CHECK(value.sizes() == values.front().sizes());
  if (values.size() > 1)
    shape.insert(shape.begin(), static_cast<int>(values.size()));
  return shape;
}

/// Builds all layers, each on the outputs of the previous one, and returns the last output.
at::Tensor check_layers(const plan::ModelShape& shape) {
  const plan::Model model = plan::model_of(shape);
  const auto specs = builder_of(shape).layers(shape, {});
  REQUIRE(specs.size() == model.layers.size());
  REQUIRE_FALSE(specs.empty());
  Tensors values{zeros(plan::sample_of(shape).input)};
  for (std::size_t at = 0; at < specs.size(); ++at) {
    const plan::Layer& planned = model.layers[at];
    INFO("layer " << at << ", " << planned.name);
    const auto layer = build_layer(specs, static_cast<int>(at), /*base_seed=*/1);
    values = layer->forward_all(values, {});
    CHECK(specs[at].name == planned.name);
    CHECK(parameters_of(*layer) == planned.parameters);
    CHECK(shape_of(values) == planned.output_shape);
  }
  return values.front();
}

std::vector<std::reference_wrapper<const plan::ModelDescriptor>> trained_kinds() {
  auto kinds = plan::model_kinds();
  std::erase_if(kinds, [](const plan::ModelDescriptor& model) {
    return model.kind == plan::MeasuredShape::kind;
  });
  return kinds;
}

TEST_CASE("Every model's layers have the planned names, parameters and shapes", "[exec][models]") {
  const at::NoGradGuard no_grad;
  std::vector<plan::ModelShape> shapes{test::small_shape, plan::AlexNetShape{.image_size = 63},
                                       plan::AlexNetShape{.image_size = 64}};
  for (const plan::ModelDescriptor& model : trained_kinds())
    shapes.push_back(model.plain());
  REQUIRE(shapes.size() >= 5);
  for (const plan::ModelShape& shape : shapes) {
    INFO(to_json(shape).dump());
    const at::Tensor output = check_layers(shape);
    const at::Tensor loss =
        builder_of(shape).loss(shape)({output}, {zeros(plan::sample_of(shape).target)});
    CHECK(loss.dim() == 0);
    CHECK(std::isfinite(loss.item<float>()));
  }
}

TEST_CASE("Every model names missing data", "[exec][models]") {
  std::size_t models = 0;
  for (const plan::ModelDescriptor& model : trained_kinds()) {
    INFO(model.kind);
    const plan::ModelShape shape = model.plain();
    const std::string error =
        test::error_of([&] { builder_of(shape).open(shape, "/nowhere/at-all", {}); });
    CHECK(error.find("/nowhere/at-all") != std::string::npos);
    ++models;
  }
  CHECK(models >= 2);
}

TEST_CASE("Layers of another program cannot be trained, which the error says", "[exec][models]") {
  CHECK(test::error_of([] { builder_of(plan::ModelShape(plan::MeasuredShape{})); }) ==
        "the model measured cannot be trained, only planned and predicted: use `pipewright "
        "simulate`");
}

TEST_CASE("A model that only plan knows cannot be trained, which the error says",
          "[exec][models]") {
  CHECK(test::error_of([] { builder_of(plan::ModelShape(test::StackShape{})); }) ==
        "the model stack cannot be trained, only planned and predicted: use `pipewright simulate`");
}

}  // namespace models_test
