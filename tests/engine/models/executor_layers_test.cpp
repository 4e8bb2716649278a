// The planner's counts for the executor's own layers, compared with the layers themselves.

#include "pipewright/plan/model/executor_layers.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <string_view>

#include "exec/support/figures_folder.hpp"
#include "exec/support/run_layers.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/plan/model/encoder_decoder_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/model/vit_model.hpp"
#include "support/catch.hpp"

namespace executor_layers_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using plan::Bytes;

/// Counts the FLOPs of this thread's matrix products during its lifetime, from the input sizes of
/// LibTorch's operators.
class Products {
 public:
  Products()
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(&note).needsInputs(true).scopes(
                {at::RecordScope::FUNCTION}))) {
    flops_ = 0;
  }
  ~Products() { at::removeCallback(handle_); }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  static double flops() { return flops_; }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    const std::string_view name = call.name();
    const auto inputs = call.inputs();
    const auto tensor = [&](std::size_t at) { return inputs[at].toTensor(); };
    // Each element of the first operand is multiplied with the columns of the second.
    const auto product = [&](const at::Tensor& a, std::int64_t columns) {
      flops_ += 2.0 * static_cast<double>(a.numel()) * static_cast<double>(columns);
    };
    if (name == "aten::mm" || name == "aten::bmm")
      product(tensor(0), tensor(1).size(-1));
    else if (name == "aten::addmm" || name == "aten::baddbmm")
      product(tensor(1), tensor(2).size(-1));
    else if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") {
      product(tensor(0), tensor(1).size(2));
      const std::int64_t weights = tensor(0).numel() / tensor(0).size(3) * tensor(1).size(2);
      flops_ += 2.0 * static_cast<double>(weights * tensor(2).size(3));
    }
    return nullptr;
  }

  inline static thread_local double flops_ = 0;
  at::CallbackHandle handle_;
};

struct Counted {
  Bytes kept, kept_selective, output;  // including the input
  double flops = 0;
};

/// Returns the bytes that a layer's graph holds after all other references to inputs and outputs
/// are gone.
Bytes held_by_graph(Layer& layer, const Tensors& inputs, bool selective) {
  const at::Tensor zero = at::zeros({}, inputs.front().options().dtype(at::kFloat));
  MemoryAccount account;
  const ChargeTo charge(account);
  Tensors copies;
  for (const at::Tensor& input : inputs)
    copies.push_back(input.is_floating_point() ? input + zero.requires_grad_() : input.clone());
  Tensors outputs = layer.forward_all(copies, {.selective_recompute = selective});
  std::vector<std::shared_ptr<torch::autograd::Node>> graphs;
  for (const at::Tensor& output : outputs)
    graphs.push_back(output.grad_fn());
  outputs.clear();
  copies.clear();
  return account.held();
}

Counted counted(Layer& layer, Tensors& values) {
  const Tensors inputs = values;
  Counted found;
  {
    const Products products;
    const at::NoGradGuard no_grad;
    values = layer.forward_all(inputs, {});  // also creates the tables of positions
    found.flops = Products::flops();
  }
  found.output = {static_cast<std::int64_t>(values.front().nbytes())};
  found.kept = held_by_graph(layer, inputs, false);
  found.kept_selective = held_by_graph(layer, inputs, true);
  return found;
}

struct Sizes {
  int rows, sequence;
  at::ScalarType type;
};
const Sizes all_sizes[] = {
    {1, 23, at::kFloat}, {3, 17, at::kFloat},    {5, 1, at::kFloat},
    {2, 77, at::kFloat}, {1, 23, at::kBFloat16}, {3, 65, at::kBFloat16},
};

void check_layer(const plan::ExecutorLayer& planned, const plan::TransformerLayer& products,
                 const Counted& found) {
  const Bytes kept = planned.input + planned.activation();
  CHECK(kept.value == found.kept.value);
  CHECK((kept - planned.selective_activation()).value == found.kept_selective.value);
  CHECK(planned.output.value == found.output.value);
  CHECK(products.product_flops + planned.attention_flops == found.flops);
}

void check_model(const std::vector<LayerSpec>& specs, const plan::TransformerShape& shape,
                 const Sizes& sizes) {
  const plan::TransformerTraining training = plan::training_of(shape, sizes.rows);
  const plan::Cut cut{.microbatch = sizes.rows};
  const auto planned =
      plan::executor_layers(training, cut, static_cast<int>(c10::elementSize(sizes.type)));
  const auto products = plan::layers_of(training, cut);
  const auto layers = test::build_all(specs);
  REQUIRE(planned.size() == layers.size());
  Tensors values{test::formula_tokens("kept", sizes.rows, sizes.sequence, shape.config.vocabulary)};
  for (std::size_t at = 0; at < layers.size(); ++at) {
    INFO(planned[at].name << " of " << sizes.rows << " × " << sizes.sequence << " in "
                          << c10::toString(sizes.type));
    layers[at]->to(sizes.type);
    check_layer(planned[at], products[at], counted(*layers[at], values));
  }
}

TEST_CASE("Each layer of a folder saves and multiplies what the planner counts", "[exec][models]") {
  const auto names = test::figures_folders();
  CHECK(names.size() >= 17);
  for (const std::string& name : names)
    for (const Sizes& sizes : all_sizes) {
      INFO(name);
      const test::FiguresFolder folder(name);
      const auto shape = folder.shape(sizes.sequence);
      const auto specs = builder_of(plan::ModelShape(shape)).layers(shape, {.seed = 1});
      check_model(specs, shape.transformer, sizes);
    }
}

TEST_CASE("A model given by sizes saves and multiplies what the planner counts", "[exec][models]") {
  for (const auto& [name, small] : test::small_transformers())
    for (const Sizes& sizes : all_sizes) {
      INFO(name);
      plan::TransformerShape shape = small;
      shape.sequence = shape.config.longest = sizes.sequence;
      check_model(transformer_layers(shape), shape, sizes);
    }
}

/// `kept_inputs`: the inputs that each layer saves in addition to the estimate.
void check_estimates(const plan::ModelShape& shape, const at::Tensor& first,
                     const std::vector<std::vector<std::size_t>>& kept_inputs) {
  const plan::Model model = plan::model_of(shape);
  const auto layers = test::build_all(builder_of(shape).layers(shape, {.seed = 1}));
  REQUIRE(kept_inputs.size() == layers.size());
  Tensors values{first};
  for (std::size_t at = 0; at < layers.size(); ++at) {
    INFO(shape.kind() << " " << model.layers[at].name);
    double expected =
        4.0 * static_cast<double>(first.size(0)) * estimate_of(shape, model.layers[at]).kept;
    for (const std::size_t input : kept_inputs[at])
      expected += static_cast<double>(values[input].nbytes());
    if (values.front().is_floating_point())
      CHECK(static_cast<double>(held_by_graph(*layers[at], values, false).value) == expected);
    const at::NoGradGuard no_grad;
    values = layers[at]->forward_all(values, {});
  }
}

TEST_CASE("Layers of built-in models save what is estimated", "[exec][models]") {
  check_estimates(plan::GptShape{.blocks = 1, .hidden = 21, .heads = 3, .sequence = 13},
                  test::formula_tokens("gpt", 3, 13, 256), {{}, {0}, {0}});
  check_estimates(
      plan::VitShape{.blocks = 1, .hidden = 21, .heads = 3, .patch = 4, .image_size = 20},
      at::rand({3, 3, 20, 20}), {{}, {0}, {0}});
  check_estimates(
      plan::EncoderDecoderShape{
          .encoder_blocks = 1, .decoder_blocks = 1, .hidden = 21, .heads = 3, .sequence = 13},
      test::formula_tokens("both", 6, 13, 256).view({3, 2, 13}), {{}, {0}, {0, 1}, {1}});
}

}  // namespace executor_layers_test
