#include "pipewright/engine/models/alexnet.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/data/cifar10.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/hash.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/alexnet_layers.hpp"

namespace pipewright::engine {
namespace {

namespace nn = torch::nn;

/// A layer without parameters.
class Function final : public exec::Layer {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;
  explicit Function(Body body) : body_(std::move(body)) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return body_(input);
  }

 private:
  Body body_;
};

class Conv final : public exec::Layer {
 public:
  explicit Conv(const nn::Conv2dOptions& options)
      : conv_(register_module("conv", nn::Conv2d(options))) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return conv_->forward(input);
  }

 private:
  nn::Conv2d conv_;
};

class Linear final : public exec::Layer {
 public:
  Linear(int in, int out) : linear_(register_module("linear", nn::Linear(in, out))) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return linear_->forward(input);
  }

 private:
  nn::Linear linear_;
};

/// Drops half of its input in training, as a pure function of seed, step and microbatch: a
/// recomputed forward drops the same elements.
class Dropout final : public exec::Layer {
 public:
  Dropout(int seed, int layer) : seed_(seed), layer_(layer) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    if (!is_training())
      return input;
    at::Generator generator = at::detail::createCPUGenerator(
        exec::hash_of({seed_, layer_, context.step, context.microbatch}));
    // Sampled on the CPU, so that it is the same on every device.
    at::Tensor mask = at::empty(input.sizes(), input.scalar_type());
    mask.bernoulli_(keep_probability, generator).div_(keep_probability);
    return input * exec::put_on(mask, input.device());
  }

 private:
  static constexpr double keep_probability = 0.5;
  int seed_, layer_;
};

using Build = std::function<std::shared_ptr<exec::Layer>()>;

Build function(Function::Body body) {
  return [body = std::move(body)] { return std::make_shared<Function>(body); };
}

/// Adaptive average pooling. The backward of adaptive_avg_pool2d has no deterministic kernel on
/// GPUs, so each of the two sides is a product with a matrix instead.
class AveragePool final : public exec::Layer {
 public:
  AveragePool(int height, int width) : height_{height, {}}, width_{width, {}} {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    if (input.size(-2) == height_.windows && input.size(-1) == width_.windows)
      return at::alias(input);
    return at::matmul(height_.matrix_for(input, -2),
                      at::matmul(input, width_.matrix_for(input, -1).t()));
  }

 private:
  struct Side {
    int windows;
    at::Tensor matrix;  // [windows, length]; cached

    const at::Tensor& matrix_for(const at::Tensor& input, int dimension) {
      const std::int64_t length = input.size(dimension);
      if (matrix.defined() && matrix.size(1) == length && matrix.dtype() == input.dtype() &&
          matrix.device() == input.device())
        return matrix;
      const at::Tensor made = at::zeros({windows, length});
      for (std::int64_t window = 0; window < windows; ++window) {
        const std::int64_t begin = window * length / windows;
        const std::int64_t end = ((window + 1) * length + windows - 1) / windows;
        made[window].slice(0, begin, end).fill_(1.0 / static_cast<double>(end - begin));
      }
      return matrix = exec::put_on(made.to(input.scalar_type()), input.device());
    }
  };
  Side height_, width_;
};

Build max_pooling(const plan::AlexNetLayer& layer) {
  return function([kernel = layer.kernel, stride = layer.stride](const at::Tensor& input) {
    return at::max_pool2d(input, kernel, stride);
  });
}

/// `index`: the layer's index in the model, which its random numbers depend on.
Build build_of(const plan::AlexNetLayer& layer, int seed, int index) {
  using plan::AlexNetKind;
  const std::vector<int>& out = layer.output_shape;
  switch (layer.kind) {
    case AlexNetKind::Conv:
      return [options = nn::Conv2dOptions(layer.in, out[0], layer.kernel)
                            .stride(layer.stride)
                            .padding(layer.padding)] { return std::make_shared<Conv>(options); };
    case AlexNetKind::Relu:
      return function([](const at::Tensor& input) { return at::relu(input); });
    case AlexNetKind::MaxPool:
      return max_pooling(layer);
    case AlexNetKind::AveragePool:
      return [height = out[1], width = out[2]] {
        return std::make_shared<AveragePool>(height, width);
      };
    case AlexNetKind::Flatten:
      return function([](const at::Tensor& input) { return input.flatten(1); });
    case AlexNetKind::Dropout:
      return [seed, index] { return std::make_shared<Dropout>(seed, index); };
    case AlexNetKind::Linear:
      break;
  }
  return [in = layer.in, features = out[0]] { return std::make_shared<Linear>(in, features); };
}

std::string alexnet_kind(const plan::AlexNetLayer& layer) {
  return fmt::format("alexnet {}: in {}, out {}, kernel {}, stride {}, padding {}",
                     plan::to_string(layer.kind), layer.in, fmt::join(layer.output_shape, "x"),
                     layer.kernel, layer.stride, layer.padding);
}

}  // namespace

std::vector<exec::LayerSpec> alexnet_layers(const plan::AlexNetShape& shape, int seed) {
  std::vector<exec::LayerSpec> specs;
  for (const plan::AlexNetLayer& layer : plan::alexnet_layers(shape))
    specs.push_back({.name = layer.name,
                     .build = build_of(layer, seed, static_cast<int>(specs.size())),
                     .varies = layer.kind == plan::AlexNetKind::Dropout,
                     .kind = alexnet_kind(layer)});
  return specs;
}

template <>
const ModelBuilder& builder_of<plan::AlexNetShape>() {
  static const ModelBuilder alexnet = declare_builder<plan::AlexNetShape>(
      {.layers = [](const plan::AlexNetShape& shape,
                    const LayerChoice& choice) { return alexnet_layers(shape, choice.seed); },
       .open =
           [](const plan::AlexNetShape& shape, const std::filesystem::path& folder,
              const exec::BatchShape& batch) {
             return exec::open_cifar10(folder, shape.image_size, batch);
           }});
  return alexnet;
}

}  // namespace pipewright::engine
