#include "pipewright/exec/models/alexnet.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <map>

#include "device/stream.hpp"
#include "hash.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;

/// A layer without parameters.
class Function final : public Layer {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;
  explicit Function(Body body) : body_(std::move(body)) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override { return body_(input); }

 private:
  Body body_;
};

class Conv final : public Layer {
 public:
  explicit Conv(const nn::Conv2dOptions& options)
      : conv_(register_module("conv", nn::Conv2d(options))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return conv_->forward(input);
  }

 private:
  nn::Conv2d conv_;
};

class Linear final : public Layer {
 public:
  Linear(int in, int out) : linear_(register_module("linear", nn::Linear(in, out))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return linear_->forward(input);
  }

 private:
  nn::Linear linear_;
};

/// Drops half of its input while training, as a pure function of its seed, step and microbatch: a
/// recomputed forward drops the same elements.
class Dropout final : public Layer {
 public:
  Dropout(int seed, int layer) : seed_(seed), layer_(layer) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    if (!is_training())
      return input;
    at::Generator generator =
        at::detail::createCPUGenerator(hash_of({seed_, layer_, context.step, context.microbatch}));
    // Drawn on the CPU, so that it is the same on every device.
    at::Tensor mask = at::empty(input.sizes(), input.scalar_type());
    mask.bernoulli_(keep_probability, generator).div_(keep_probability);
    return input * put_on(mask, input.device());
  }

 private:
  static constexpr double keep_probability = 0.5;
  int seed_, layer_;
};

/// Adds layer after layer and carries the number of channels or features along.
class AlexNetBuilder {
 public:
  explicit AlexNetBuilder(int seed) : seed_(seed) {}

  void conv(int channels, int kernel, int stride, int padding) {
    const auto options =
        nn::Conv2dOptions(width_, channels, kernel).stride(stride).padding(padding);
    add("conv", [options] { return std::make_shared<Conv>(options); });
    width_ = channels;
  }
  void relu() {
    add("relu", [](const at::Tensor& input) { return at::relu(input); });
  }
  void max_pool() {
    add("maxpool", [](const at::Tensor& input) {
      return at::max_pool2d(input, /*kernel_size=*/3, /*stride=*/2);
    });
  }
  void average_pool(int side) {
    add("avgpool", [side](const at::Tensor& input) {
      return at::adaptive_avg_pool2d(input, {side, side});
    });
    area_ = side * side;
  }
  void flatten() {
    add("flatten", [](const at::Tensor& input) { return input.flatten(1); });
    width_ *= area_;
  }
  void dropout() {
    const int layer = static_cast<int>(layers_.size());
    add("dropout", [seed = seed_, layer] { return std::make_shared<Dropout>(seed, layer); });
  }
  void linear(int features) {
    add("linear", [in = width_, features] { return std::make_shared<Linear>(in, features); });
    width_ = features;
  }

  std::vector<LayerSpec> take() { return std::move(layers_); }

 private:
  void add(const std::string& kind, std::function<std::shared_ptr<Layer>()> build) {
    layers_.push_back({fmt::format("{}{}", kind, ++count_of_[kind]), std::move(build)});
  }
  void add(const std::string& kind, Function::Body body) {
    add(kind, [body = std::move(body)] { return std::make_shared<Function>(body); });
  }

  int seed_;
  int width_ = 3;  // channels before `flatten`, features after it
  int area_ = 1;   // pixels of a channel that reaches `flatten`
  std::map<std::string, int> count_of_;
  std::vector<LayerSpec> layers_;
};

}  // namespace

// As torchvision has it; Krizhevsky, "One weird trick for parallelizing convolutional neural
// networks", 2014.
std::vector<LayerSpec> alexnet_layers(const plan::AlexNetShape& shape, int seed) {
  AlexNetBuilder builder(seed);
  builder.conv(64, /*kernel=*/11, /*stride=*/4, /*padding=*/2);
  builder.relu();
  builder.max_pool();
  builder.conv(192, /*kernel=*/5, /*stride=*/1, /*padding=*/2);
  builder.relu();
  builder.max_pool();
  for (const int channels : {384, 256, 256}) {
    builder.conv(channels, /*kernel=*/3, /*stride=*/1, /*padding=*/1);
    builder.relu();
  }
  builder.max_pool();
  builder.average_pool(6);
  builder.flatten();

  for (int hidden_layer = 0; hidden_layer < 2; ++hidden_layer) {
    builder.dropout();
    builder.linear(4096);
    builder.relu();
  }
  builder.linear(shape.classes);
  return builder.take();
}

}  // namespace pipewright::exec
