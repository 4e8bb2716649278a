#include "pipewright/plan/model/alexnet_model.hpp"

#include <fmt/format.h>

#include <map>

#include "pipewright/plan/model/alexnet_layers.hpp"
#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

template <MaybeConst<AlexNetShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr Range classes_range{.least = 10, .most = 1'000'000};  // CIFAR-10 has 10
  // Below 63 pixels nothing of the image remains after the last pooling.
  constexpr Range image_range{.least = 63, .most = 10'000};
  visit("classes", s.classes, within(classes_range), "Number of image classes; CIFAR-10 has 10.");
  visit("image_size", s.image_size, within(image_range), "Side to which the images are enlarged.");
}

namespace {

double values_in(const std::vector<int>& shape) {
  double count = 1;
  for (const int length : shape)
    count *= length;
  return count;
}

/// Adds layers one by one and tracks the output shape.
class AlexNetBuilder {
 public:
  explicit AlexNetBuilder(const AlexNetShape& shape)
      : shape_{3, shape.image_size, shape.image_size} {}

  void conv(int channels, int kernel, int stride, int padding) {
    add_window(AlexNetKind::Conv, channels, kernel, stride, padding);
  }
  void max_pool() { add_window(AlexNetKind::MaxPool, shape_[0], 3, 2, 0); }
  void average_pool(int side) { add(AlexNetKind::AveragePool, {shape_[0], side, side}); }
  void flatten() { add(AlexNetKind::Flatten, {static_cast<int>(values_in(shape_))}); }
  void linear(int features) { add(AlexNetKind::Linear, {features}); }
  /// Adds a layer whose output has the size of its input.
  void same(AlexNetKind kind) { add(kind, shape_); }

  std::vector<AlexNetLayer> take() { return std::move(layers_); }

 private:
  void add_window(AlexNetKind kind, int channels, int kernel, int stride, int padding) {
    const auto out = [&](int side) { return (side + 2 * padding - kernel) / stride + 1; };
    AlexNetLayer& layer = add(kind, {channels, out(shape_[1]), out(shape_[2])});
    layer.kernel = kernel;
    layer.stride = stride;
    layer.padding = padding;
  }

  AlexNetLayer& add(AlexNetKind kind, std::vector<int> output_shape) {
    AlexNetLayer& layer = layers_.emplace_back(AlexNetLayer{.kind = kind, .name = {}});
    layer.name = fmt::format("{}{}", to_string(kind), ++count_of_[kind]);
    layer.in = shape_[0];
    layer.output_shape = shape_ = std::move(output_shape);
    return layer;
  }

  std::vector<int> shape_;
  std::map<AlexNetKind, int> count_of_;
  std::vector<AlexNetLayer> layers_;
};

/// Returns the number of weights per output value, without the bias.
std::int64_t taps(const AlexNetLayer& layer) {
  if (layer.kind == AlexNetKind::Conv)
    return std::int64_t{layer.in} * layer.kernel * layer.kernel;
  return layer.kind == AlexNetKind::Linear ? layer.in : 0;
}

/// Returns the plan of a layer. Only convolutions and linear layers count FLOPs, two per
/// multiply-add; those of other layers are negligible.
Layer planned(const AlexNetLayer& layer) {
  Layer plan;
  plan.name = layer.name;
  plan.kind = to_string(layer.kind);
  if (const std::int64_t weights = taps(layer); weights > 0)
    plan.parameters = (weights + 1) * layer.output_shape[0];
  plan.parameter_bytes = Bytes{4} * plan.parameters;
  plan.forward_flops = 2.0 * static_cast<double>(taps(layer)) * values_in(layer.output_shape);
  plan.output_shape = layer.output_shape;
  return plan;
}

Sample labeled_image(const AlexNetShape& shape) {
  return {.input = {.shape = {3, shape.image_size, shape.image_size}},
          .target = {.shape = {}, .is_index = true}};
}

/// Returns an empty estimate, because the layers save nothing besides their inputs and outputs.
LayerEstimate estimate_of_alexnet(const AlexNetShape&, const Layer&) { return {}; }

}  // namespace

std::string to_string(AlexNetKind kind) {
  switch (kind) {
    case AlexNetKind::Conv:
      return "conv";
    case AlexNetKind::Relu:
      return "relu";
    case AlexNetKind::MaxPool:
      return "maxpool";
    case AlexNetKind::AveragePool:
      return "avgpool";
    case AlexNetKind::Flatten:
      return "flatten";
    case AlexNetKind::Dropout:
      return "dropout";
    case AlexNetKind::Linear:
      break;
  }
  return "linear";
}

std::vector<AlexNetLayer> alexnet_layers(const AlexNetShape& shape) {
  AlexNetBuilder builder(shape);
  builder.conv(64, /*kernel=*/11, /*stride=*/4, /*padding=*/2);
  builder.same(AlexNetKind::Relu);
  builder.max_pool();
  builder.conv(192, /*kernel=*/5, /*stride=*/1, /*padding=*/2);
  builder.same(AlexNetKind::Relu);
  builder.max_pool();
  for (const int channels : {384, 256, 256}) {
    builder.conv(channels, /*kernel=*/3, /*stride=*/1, /*padding=*/1);
    builder.same(AlexNetKind::Relu);
  }
  builder.max_pool();
  builder.average_pool(6);
  builder.flatten();

  for (int hidden_layer = 0; hidden_layer < 2; ++hidden_layer) {
    builder.same(AlexNetKind::Dropout);
    builder.linear(4096);
    builder.same(AlexNetKind::Relu);
  }
  builder.linear(shape.classes);
  return builder.take();
}

Model alexnet_model(const AlexNetShape& shape) {
  Model model{.name = "alexnet", .layers = {}};
  for (const AlexNetLayer& layer : alexnet_layers(shape))
    model.layers.push_back(planned(layer));
  return model;
}

template <>
const ModelDescriptor& descriptor_of<AlexNetShape>() {
  static const ModelDescriptor alexnet =
      declare_model<AlexNetShape>({.meaning = "AlexNet in 22 layers.",
                                   .data = cifar10_data,
                                   .unit = "images",
                                   .layers = alexnet_model,
                                   .sample = labeled_image,
                                   .estimate = estimate_of_alexnet});
  return alexnet;
}

}  // namespace pipewright::plan
