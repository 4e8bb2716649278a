#include "pipewright/plan/model/alexnet_model.hpp"

#include <fmt/format.h>

#include <map>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {
namespace {

struct Window {
  int kernel;
  int stride;
  int padding;
};

/// Adds layer after layer and carries the shape along. FLOPs are those of the convolutions and
/// linear layers, two for each multiply-add; the others have none worth counting.
class AlexNetBuilder {
 public:
  explicit AlexNetBuilder(const AlexNetShape& shape)
      : shape_{3, shape.image_size, shape.image_size} {}

  void conv(int channels, Window window) {
    const std::int64_t taps = std::int64_t{shape_[0]} * window.kernel * window.kernel;
    slide(channels, window);
    add("conv", (taps + 1) * channels, 2.0 * static_cast<double>(taps) * elements());
  }
  void relu() { add("relu", 0, 0); }
  void max_pool() {
    slide(shape_[0], {.kernel = 3, .stride = 2, .padding = 0});
    add("maxpool", 0, 0);
  }
  void average_pool(int side) {
    shape_ = {shape_[0], side, side};
    add("avgpool", 0, 0);
  }
  void flatten() {
    shape_ = {static_cast<int>(elements())};
    add("flatten", 0, 0);
  }
  void dropout() { add("dropout", 0, 0); }
  void linear(int features) {
    const std::int64_t in = shape_[0];
    shape_ = {features};
    add("linear", (in + 1) * features, 2.0 * static_cast<double>(in) * features);
  }

  Model take() { return std::move(model_); }

 private:
  void slide(int channels, Window window) {
    const auto out = [&](int side) {
      return (side + 2 * window.padding - window.kernel) / window.stride + 1;
    };
    shape_ = {channels, out(shape_[1]), out(shape_[2])};
  }

  double elements() const {
    double count = 1;
    for (const int length : shape_)
      count *= length;
    return count;
  }

  void add(const std::string& kind, std::int64_t parameters, double flops) {
    Layer layer;
    layer.name = fmt::format("{}{}", kind, ++count_of_[kind]);
    layer.kind = kind;
    layer.parameters = parameters;
    layer.parameter_bytes = Bytes{4} * parameters;
    layer.forward_flops = flops;
    layer.output_shape = shape_;
    model_.layers.push_back(std::move(layer));
  }

  std::vector<int> shape_;
  std::map<std::string, int> count_of_;
  Model model_{.name = "alexnet", .layers = {}};
};

}  // namespace

// As torchvision has it; Krizhevsky, "One weird trick for parallelizing convolutional neural
// networks", 2014.
Model alexnet_model(const AlexNetShape& shape) {
  AlexNetBuilder builder(shape);
  builder.conv(64, {.kernel = 11, .stride = 4, .padding = 2});
  builder.relu();
  builder.max_pool();
  builder.conv(192, {.kernel = 5, .stride = 1, .padding = 2});
  builder.relu();
  builder.max_pool();
  for (const int channels : {384, 256, 256}) {
    builder.conv(channels, {.kernel = 3, .stride = 1, .padding = 1});
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

}  // namespace pipewright::plan
