#include "planners/calculon_layers.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::planners {
namespace {

constexpr double bytes = calculon_element_bytes;
constexpr auto forward = static_cast<std::size_t>(CalculonPhase::Forward);
constexpr auto input_gradient = static_cast<std::size_t>(CalculonPhase::InputGradient);
constexpr auto weight_gradient = static_cast<std::size_t>(CalculonPhase::WeightGradient);
constexpr auto optimizer = static_cast<std::size_t>(CalculonPhase::Optimizer);

/// Numbers of elements of a layer's tensors.
struct Elements {
  double input = 0;
  double output = 0;
  double activation = 0;
  double gradient = 0;
  double weights = 0;
};

/// Returns a layer with the usual traffic and memory: Adam with 32 bits for the weights and both
/// moments, and weight gradients computed from saved activations and the output's gradients.
CalculonLayer layer_of(const Elements& elements, std::array<double, 3> operations, double shards) {
  const double kept = elements.activation + elements.gradient;
  CalculonLayer layer{.weights = elements.weights,
                      .activation_bytes = elements.activation * bytes,
                      .output_bytes = elements.output * bytes,
                      .gradient_bytes = elements.gradient * bytes};
  layer.operations = {operations[forward], operations[input_gradient], operations[weight_gradient],
                      11 * elements.weights / shards};
  layer.moved_bytes[forward] = (elements.input + elements.output + elements.weights) * bytes;
  layer.moved_bytes[input_gradient] = (elements.weights + kept) * bytes;
  layer.moved_bytes[weight_gradient] = elements.weights > 0 ? (elements.weights + kept) * bytes : 0;
  layer.moved_bytes[optimizer] = 12 * elements.weights / shards;
  return layer;
}

/// The layers of a block with the sizes of an execution.
class Block {
 public:
  Block(const CalculonModel& model, const CalculonExecution& execution)
      : model_(model),
        execution_(execution),
        ranks_(execution.tensor),
        shards_(execution.shard_optimizer ? execution.data : 1),
        tokens_(execution.microbatch * model.sequence),
        whole_(tokens_ * model.hidden),
        split_(execution.exchange == CalculonExchange::Halves
                   ? std::floor(tokens_ / ranks_) * model.hidden
                   : whole_),
        all_again_(execution.recompute == CalculonRecompute::Full) {}

  std::vector<CalculonLayer> layers() && {
    add_attention();
    add_feed_forward();
    return std::move(layers_);
  }

 private:
  void add_attention() {
    const bool again = execution_.recompute != CalculonRecompute::None;
    const bool gathers_again = again || execution_.gather_again;
    const double width = model_.heads * model_.head_size;
    const double batch = execution_.microbatch * model_.heads / ranks_;
    const double scores = batch * model_.sequence * model_.sequence;
    add_norm();
    if (execution_.tensor_overlap == CalculonOverlap::None) {
      add(exchange(false)).exchanged_again = gathers_again;
      auto& copies = add(fork(whole_, 3));
      copies.computed_again = gathers_again;
      copies.keeps_activation = !gathers_again;
      for (int product = 0; product < 3; ++product) {
        auto& layer = add(linear(model_.hidden, width / ranks_));
        layer.computed_again = all_again_;
        layer.keeps_activation = false;
        layer.shares_activation = true;
      }
    } else {
      add_tiled(model_.hidden, 3 * width, false, gathers_again);
    }
    auto& products = add(product(batch, model_.sequence, model_.head_size, model_.sequence));
    products.computed_again = again;
    products.keeps_output = !again;
    auto& softmax = add(pointwise(scores, 5, 8));
    softmax.moved_bytes[input_gradient] = softmax.moved_bytes[forward];
    softmax.computed_again = again;
    softmax.keeps_output = !again;
    auto& dropped = add(dropout(scores));
    dropped.computed_again = again;
    dropped.keeps_activation = !again;
    add(product(batch, model_.sequence, model_.sequence, model_.head_size)).computed_again =
        all_again_;
    if (execution_.tensor_overlap == CalculonOverlap::None)
      add_reduced(width);
    else
      add_tiled(width, model_.hidden, true, all_again_);
    add_residual();
  }

  void add_feed_forward() {
    const bool gathers_again = all_again_ || execution_.gather_again;
    add_norm();
    if (execution_.tensor_overlap == CalculonOverlap::None) {
      add(exchange(false)).exchanged_again = gathers_again;
      auto& layer = add(linear(model_.hidden, model_.feed_forward / ranks_));
      layer.computed_again = all_again_;
      layer.keeps_activation = !gathers_again;
    } else {
      add_tiled(model_.hidden, model_.feed_forward, false, gathers_again);
    }
    // GeLU, fused with the preceding product, saves nothing.
    const double elements = model_.feed_forward * tokens_ / ranks_;
    auto& gelu = add(layer_of({.input = elements, .output = elements},
                              {8 * elements, 13 * elements, 0}, shards_));
    gelu.moved_bytes[input_gradient] = gelu.moved_bytes[forward];
    gelu.computed_again = all_again_;
    if (execution_.tensor_overlap == CalculonOverlap::None)
      add_reduced(model_.feed_forward);
    else
      add_tiled(model_.feed_forward, model_.hidden, true, all_again_);
    add_residual();
  }

  void add_norm() {
    add(fork(split_, 2)).computed_again = all_again_;
    auto& norm = add(layer_of({.input = split_,
                               .output = split_,
                               .activation = split_,
                               .gradient = split_,
                               .weights = 2 * model_.hidden},
                              {9 * split_, 14 * split_, 7 * split_}, shards_));
    norm.computed_again = all_again_;
    norm.keeps_activation = false;
    norm.shares_activation = true;
  }

  /// Adds a product over a width that is partitioned among ranks, and the sum of its parts.
  void add_reduced(double width) {
    add(linear(width / ranks_, model_.hidden)).computed_again = all_again_;
    auto& sum = add(exchange(true));
    sum.exchanged_again = all_again_;
    sum.keeps_activation = false;
  }

  void add_residual() {
    add(dropout(split_)).computed_again = all_again_;
    auto& sum = add(layer_of(
        {.input = 2 * split_, .output = split_, .activation = 2 * split_, .gradient = split_},
        {split_, 2 * split_, 0}, shards_));
    sum.computed_again = all_again_;
    sum.keeps_activation = false;
    sum.shares_activation = true;
  }

  /// Adds a product that communicates while it computes.
  void add_tiled(double inputs, double outputs, bool reduces, bool exchanged_again) {
    const bool halves = execution_.exchange == CalculonExchange::Halves;
    (reduces ? inputs : outputs) /= ranks_;
    const double input = tokens_ * inputs, output = tokens_ * outputs;
    Elements elements{.input = input, .output = output, .weights = inputs * outputs};
    if (halves && reduces) {
      elements.activation = input;
      elements.gradient = 2 * std::floor(output / ranks_);
    } else if (halves) {
      elements.activation = std::floor(input / ranks_);
      elements.gradient = output;
    } else if (reduces) {
      elements.gradient = 2 * output;
    } else {
      elements.activation = input;
    }
    const double operations = 2 * tokens_ * inputs * outputs;
    auto& layer = add(layer_of(elements, {operations, operations, operations}, shards_));
    layer.is_matrix = true;
    layer.computed_again = all_again_;
    layer.exchanged_again = exchanged_again;
    layer.comm = CalculonComm::Tiled;
    layer.reduces = reduces;
    layer.gathered_bytes = input * bytes;
    layer.reduced_bytes = output * bytes;
  }

  CalculonLayer linear(double inputs, double outputs) const {
    const double operations = 2 * tokens_ * inputs * outputs;
    auto layer = layer_of({.input = tokens_ * inputs,
                           .output = tokens_ * outputs,
                           .activation = tokens_ * inputs,
                           .gradient = tokens_ * outputs,
                           .weights = inputs * outputs},
                          {operations, operations, operations}, shards_);
    layer.is_matrix = true;
    return layer;
  }

  /// Returns a batch of products of two activations.
  CalculonLayer product(double batch, double rows, double inner, double columns) const {
    const double operations = 2 * batch * rows * inner * columns;
    const double both = batch * (rows * inner + inner * columns);
    auto layer = layer_of({.input = both,
                           .output = batch * rows * columns,
                           .activation = both,
                           .gradient = batch * rows * columns},
                          {operations, 2 * operations, 0}, shards_);
    layer.is_matrix = true;
    return layer;
  }

  CalculonLayer pointwise(double elements, double operations, double backward) const {
    return layer_of(
        {.input = elements, .output = elements, .activation = elements, .gradient = elements},
        {operations * elements, backward * elements, 0}, shards_);
  }

  /// Returns a dropout, which saves a mask of one byte per element.
  CalculonLayer dropout(double elements) const {
    auto layer = pointwise(elements, 1, 1);
    layer.activation_bytes = elements;
    layer.gradient_bytes = elements;
    layer.moved_bytes[forward] += elements;
    layer.moved_bytes[input_gradient] = layer.moved_bytes[forward];
    return layer;
  }

  /// Returns the use of an activation by several layers, whose gradients are summed.
  CalculonLayer fork(double elements, double users) const {
    auto layer =
        layer_of({.input = elements, .activation = elements}, {0, users * elements, 0}, shards_);
    layer.moved_bytes[forward] = 0;
    layer.moved_bytes[input_gradient] = elements * bytes * (users + 1);
    return layer;
  }

  /// Returns a communication that the ranks wait for. A rank that reduces adds all parts but its
  /// own.
  CalculonLayer exchange(bool reduces) const {
    if (ranks_ == 1)
      return {};
    const bool halves = execution_.exchange == CalculonExchange::Halves;
    const double added = whole_ * (ranks_ - 1) / ranks_;
    auto layer =
        layer_of({.input = whole_, .output = whole_, .activation = whole_, .gradient = whole_},
                 {reduces ? added : 0, reduces ? 0 : added, 0}, shards_);
    layer.comm = CalculonComm::Apart;
    layer.reduces = reduces;
    layer.gathered_bytes = layer.reduced_bytes = whole_ * bytes;
    if (halves) {
      layer.activation_bytes /= ranks_;
      layer.gradient_bytes /= ranks_;
    } else if (reduces) {  // no communication in the backward
      layer.gradient_bytes = 0;
      layer.moved_bytes[input_gradient] = 0;
    } else {  // no communication in the forward
      layer.activation_bytes = 0;
      layer.moved_bytes[forward] = 0;
    }
    return layer;
  }

  CalculonLayer& add(CalculonLayer layer) { return layers_.emplace_back(layer); }

  const CalculonModel& model_;
  const CalculonExecution& execution_;
  double ranks_;
  double shards_;
  double tokens_;  // of a microbatch
  double whole_;   // elements of an activation
  double split_;   // those on one rank, outside tensor-parallel regions
  bool all_again_;
  std::vector<CalculonLayer> layers_;
};

}  // namespace

std::vector<CalculonLayer> calculon_layers(const CalculonModel& model,
                                           const CalculonExecution& execution) {
  return Block(model, execution).layers();
}

}  // namespace pipewright::planners
