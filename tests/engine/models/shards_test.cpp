// Tensor-parallel ranks, whose results are bit-identical to one rank that computes all groups.

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "exec/support/thread_shards.hpp"
#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace shards_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

/// Sizes that divide nothing evenly, except the heads.
constexpr plan::GptShape shape{
    .blocks = 1, .hidden = 36, .heads = 4, .sequence = 7, .vocabulary = 253};
constexpr int batch = 3;

enum class Backward { Full, Split };

struct Case {
  int layer = 0;
  int groups = 1;
  at::ScalarType precision = at::kFloat;
  Backward backward = Backward::Full;
  bool selective = false;
};

/// The results of one tensor-parallel rank, or of all together, for a microbatch.
struct Made {
  at::Tensor output;          // the loss for the last layer
  at::Tensor input_gradient;  // undefined for the embedding
  std::map<std::string, at::Tensor> gradients;
  std::vector<CutParameter> cuts;
};

TrainingSetup setup_of(at::ScalarType precision, std::vector<LayerSpec> layers) {
  return {
      .layers = std::move(layers), .loss = cross_entropy, .base_seed = 5, .precision = precision};
}

at::Tensor tokens(int factor) {
  return (at::arange(batch * shape.sequence) * factor)
      .remainder(shape.vocabulary)
      .view({batch, -1});
}

at::Tensor waves(std::vector<std::int64_t> sizes, double factor) {
  const std::int64_t numbers = at::empty(sizes).numel();
  return at::sin(at::arange(numbers, at::kDouble) * factor).view(sizes).to(at::kFloat);
}

void backward(Backward kind, const at::Tensor& output, const Tensors& gradients,
              const at::Tensor& input, Made& made) {
  if (kind == Backward::Full) {
    full_backward({output}, gradients);
    made.input_gradient = input.grad();
    return;
  }
  SplitBackward split;
  made.input_gradient = split.input_gradients({output}, gradients, {input}).front();
  split.weight_gradients();
}

Made run_shard(const Case& c, const std::vector<LayerSpec>& specs,
               const TensorParallelPlace& place) {
  const TrainingSetup setup = setup_of(c.precision, specs);
  const auto layer = build_layer(setup, c.layer, at::kCPU, place);
  const bool is_first = c.layer == 0, is_last = c.layer + 1 == static_cast<int>(specs.size());
  const at::Tensor input =
      is_first ? tokens(11)
               : waves({batch, shape.sequence, shape.hidden}, 0.7).to(c.precision).requires_grad_();
  Tensors outputs = layer->forward_all({input}, {.selective_recompute = c.selective});
  Tensors gradients;
  if (is_last) {
    for (at::Tensor& output : outputs)
      output = output.to(at::kFloat);
    outputs = {loss_of(setup, outputs, {tokens(17)}, place)};
  } else {
    gradients = {waves(outputs.front().sizes().vec(), 0.3).to(c.precision)};
  }
  Made made;
  made.output = outputs.front().detach();
  made.cuts = layer->cut_parameters();
  backward(c.backward, outputs.front(), gradients, input, made);
  for (const auto& named : layer->named_parameters())
    made.gradients[named.key()] = named.value().grad();
  return made;
}

/// Checks that replicated results are equal on all ranks, and joins partitioned ones.
Made put_together(const std::vector<Made>& shards) {
  Made all = shards.front();
  for (const Made& shard : shards) {
    CHECK(at::equal(shard.output, all.output));
    if (all.input_gradient.defined())
      CHECK(at::equal(shard.input_gradient, all.input_gradient));
  }
  for (auto& [name, whole] : all.gradients) {
    INFO(name);
    Tensors parts;
    for (const Made& shard : shards)
      parts.push_back(shard.gradients.at(name));
    const auto cut =
        std::find_if(all.cuts.begin(), all.cuts.end(),
                     [&, wanted = name](const CutParameter& c) { return c.name == wanted; });
    if (cut != all.cuts.end())
      whole = joined(parts, *cut);
    for (const at::Tensor& part : parts)
      if (cut == all.cuts.end())
        CHECK(at::equal(part, whole));
  }
  return all;
}

Made run(int count, const Case& c, const std::vector<LayerSpec>& specs = gpt_layers(shape)) {
  return put_together(test::run_shards(count, c.groups, [&](const TensorParallelPlace& place) {
    return run_shard(c, specs, place);
  }));
}

void check_equal(const Made& a, const Made& b) {
  CHECK(at::equal(a.output, b.output));
  CHECK(a.input_gradient.defined() == b.input_gradient.defined());
  if (a.input_gradient.defined())
    CHECK(at::equal(a.input_gradient, b.input_gradient));
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [name, gradient] : a.gradients) {
    INFO(name);
    CHECK(at::equal(gradient, b.gradients.at(name)));
  }
}

void check_close(const Made& a, const Made& b) {
  const auto close = [](const at::Tensor& x, const at::Tensor& y) {
    return at::allclose(x, y, /*rtol=*/1e-3, /*atol=*/1e-5);
  };
  CHECK(close(a.output, b.output));
  if (a.input_gradient.defined())
    CHECK(close(a.input_gradient, b.input_gradient));
  for (const auto& [name, gradient] : a.gradients) {
    INFO(name);
    CHECK(close(gradient, b.gradients.at(name)));
  }
}

constexpr int layers = 3;  // embedding, block, head

TEST_CASE("1, 2 and 4 tensor-parallel ranks are bit-identical for the same groups",
          "[exec][shards]") {
  int tried = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (const auto precision : {at::kFloat, at::kBFloat16})
      for (const int groups : {2, 4}) {
        const Case c{.layer = layer, .groups = groups, .precision = precision};
        const Made alone = run(1, c);
        for (int count = 2; count <= groups; count *= 2) {
          INFO("layer " << layer << ", " << c10::toString(precision) << ", " << count << " shards, "
                        << groups << " groups");
          check_equal(run(count, c), alone);
          ++tried;
        }
      }
  CHECK(tried == 18);
}

TEST_CASE("Numbers of groups that are not powers of two are bit-identical as well",
          "[exec][shards]") {
  plan::GptShape six = shape;
  six.heads = 6;
  int tried = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const Case c{.layer = layer, .groups = 6};
    const Made alone = run(1, c, gpt_layers(six));
    for (const int count : {2, 3, 6}) {
      INFO("layer " << layer << ", " << count << " shards");
      check_equal(run(count, c, gpt_layers(six)), alone);
      ++tried;
    }
  }
  CHECK(tried == 9);
}

TEST_CASE("Tensor-parallel ranks compute the same as the unpartitioned layer", "[exec][shards]") {
  for (int layer = 0; layer < layers; ++layer) {
    INFO("layer " << layer);
    const Made whole = run(1, {.layer = layer, .groups = 1});
    check_close(run(2, {.layer = layer, .groups = 4}), whole);
  }
}

TEST_CASE("A tensor-parallel rank's split backward is bit-identical to the whole one",
          "[exec][shards]") {
  for (const int layer : {1, 2})
    for (const int count : {1, 2, 4}) {
      Case c{.layer = layer, .groups = 4};
      const Made full = run(count, c);
      c.backward = Backward::Split;
      INFO("layer " << layer << ", " << count << " shards");
      check_equal(run(count, c), full);
    }
}

TEST_CASE("A tensor-parallel rank with recomputed attention is bit-identical", "[exec][shards]") {
  for (const auto kind : {Backward::Full, Backward::Split}) {
    const Made kept = run(1, {.layer = 1, .groups = 2});
    check_equal(run(2, {.layer = 1, .groups = 2, .backward = kind, .selective = true}), kept);
  }
}

/// A decoder of these widths in which all partitionable layers have partitions.
plan::TransformerShape decoder(bool gated) {
  return {.config = {.layers = 1,
                     .hidden = shape.hidden,
                     .heads = 8,
                     .kv_heads = gated ? 4 : 8,
                     .head_channels = 6,
                     .value_channels = gated ? 6 : 5,
                     .feed_forward = 101,
                     .vocabulary = shape.vocabulary,
                     .longest = shape.sequence,
                     .learned_positions = !gated,
                     .gated = gated,
                     .norm = gated ? plan::NormKind::Root : plan::NormKind::Layer,
                     .head_norms = true,
                     .query_bias = !gated,
                     .projection_bias = !gated,
                     .feed_forward_bias = !gated},
          .sequence = shape.sequence};
}

/// A decoder with experts of a width that does not divide evenly.
plan::TransformerShape mixture(bool gated) {
  plan::TransformerShape sparse = decoder(gated);
  sparse.config.experts = 6;
  sparse.config.experts_per_token = 3;
  sparse.config.expert_feed_forward = 13;
  sparse.config.shared_feed_forward = gated ? 0 : 10;
  sparse.config.router_bias = !gated;
  sparse.config.set_mixture_behind(0);
  return sparse;
}

TEST_CASE("Tensor-parallel ranks of a mixture are bit-identical for the same groups",
          "[exec][shards]") {
  for (const bool gated : {true, false})
    for (const auto kind : {Backward::Full, Backward::Split})
      for (const auto precision : {at::kFloat, at::kBFloat16}) {
        const auto specs = transformer_layers(mixture(gated));
        const Case c{.layer = 1, .groups = 4, .precision = precision, .backward = kind};
        const Made alone = run(1, c, specs);
        for (const int count : {2, 4}) {
          INFO(c10::toString(precision) << ", " << count << " shards");
          check_equal(run(count, c, specs), alone);
        }
        Case other_half = c;
        other_half.backward = Backward::Full;
        check_equal(run(1, other_half, specs), alone);
      }
  for (const bool gated : {true, false}) {
    const auto specs = transformer_layers(mixture(gated));
    check_close(run(2, {.layer = 1, .groups = 4}, specs), run(1, {.layer = 1, .groups = 1}, specs));
  }
}

TEST_CASE("Tensor-parallel ranks of a decoder are bit-identical for the same groups",
          "[exec][shards]") {
  for (const bool gated : {true, false}) {
    const auto specs = transformer_layers(decoder(gated));
    for (int layer = 0; layer < layers; ++layer)
      for (const auto kind : {Backward::Full, Backward::Split}) {
        if (layer == 0 && kind == Backward::Split)
          continue;
        for (const auto precision : {at::kFloat, at::kBFloat16}) {
          const Case c{.layer = layer,
                       .groups = 4,
                       .precision = precision,
                       .backward = kind,
                       .selective = gated};
          const Made alone = run(1, c, specs);
          for (const int count : {2, 4}) {
            INFO("layer " << layer << ", " << c10::toString(precision) << ", " << count
                          << " shards");
            check_equal(run(count, c, specs), alone);
          }
        }
      }
  }
}

TEST_CASE("Tensor-parallel ranks of a decoder compute the same as the unpartitioned decoder",
          "[exec][shards]") {
  for (const bool gated : {true, false})
    for (int layer = 0; layer < layers; ++layer) {
      INFO("layer " << layer);
      const auto specs = transformer_layers(decoder(gated));
      const Made whole = run(1, {.layer = layer, .groups = 1}, specs);
      check_close(run(2, {.layer = layer, .groups = 4}, specs), whole);
    }
}

/// Attention in which two query heads share each head of keys and values.
class GroupedQueries final : public Layer {
 public:
  static constexpr int heads = 8, kv_heads = 4, width = 5, hidden = shape.hidden;

  explicit GroupedQueries(const TensorParallelPlace& place)
      : place_(place),
        queries_(register_module("queries", ColumnLinear(hidden, heads * width, place))),
        keys_values_(
            register_module("keys_values", ColumnLinear(hidden, 2 * kv_heads * width, place, 2))),
        project_(register_module("project", RowLinear(heads * width, hidden, place))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    const Tensors inputs = for_own_groups(input, place_);
    const Tensors queries = queries_->of_groups(inputs), both = keys_values_->of_groups(inputs);
    Tensors mixed;
    for (std::size_t own = 0; own < queries.size(); ++own) {
      const auto parts = both[own].chunk(2, -1);
      mixed.push_back(causal_attention(queries[own], parts[0], parts[1], {.width = width},
                                       context.selective_recompute));
    }
    return project_->sum_over(mixed);
  }
  std::vector<CutParameter> cut_parameters() const override {
    std::vector<CutParameter> all = queries_->cut_parameters("queries");
    for (const auto& cuts :
         {keys_values_->cut_parameters("keys_values"), project_->cut_parameters("project")})
      all.insert(all.end(), cuts.begin(), cuts.end());
    return all;
  }

 private:
  TensorParallelPlace place_;
  ColumnLinear queries_, keys_values_;
  RowLinear project_;
};

TEST_CASE("Shared heads of keys and values are partitioned with their query heads",
          "[exec][shards]") {
  std::vector<LayerSpec> specs(
      layers, {.name = "attention",
               .build = [] { return std::make_shared<GroupedQueries>(TensorParallelPlace{}); }});
  specs[1].build_shard = [](const TensorParallelPlace& place) {
    return std::make_shared<GroupedQueries>(place);
  };
  const Made alone = run(1, {.layer = 1, .groups = 4}, specs);
  for (const bool selective : {false, true})
    for (const int count : {2, 4})
      check_equal(run(count, {.layer = 1, .groups = 4, .selective = selective}, specs), alone);
  check_close(run(1, {.layer = 1, .groups = 1}, specs), alone);
}

TEST_CASE("Heads that do not divide among the groups are rejected with valid numbers",
          "[exec][shards]") {
  const auto specs = gpt_layers(shape);
  CHECK(test::error_of([&] { build_layer(specs, 1, 0, {.index = 0, .count = 1, .groups = 3}); }) ==
        "layer block0: 4 heads and a vocabulary of 253 cannot be divided into 3 parts: heads must "
        "divide evenly, and no part of the vocabulary be empty; 2 or 4 would do");
}

TEST_CASE("Targets and tokens outside the vocabulary are rejected on every tensor-parallel rank",
          "[exec][shards]") {
  const auto specs = gpt_layers(shape);
  const at::Tensor words = at::tensor({0, 253}, at::kLong).view({1, 2});
  const TensorParallelPlace place{.index = 0, .count = 1, .groups = 2};
  CHECK(test::error_of([&] { build_layer(specs, 0, 0, place)->forward(words, {}); }) ==
        "tokens from 0 to 253 are not all in a vocabulary of 253");
  CHECK(test::error_of([&] {
          specs.back().shard_loss({at::zeros({1, 2, 126}), at::zeros({1, 2, 127})}, {words}, place);
        }) == "targets from 0 to 253 are not all in a vocabulary of 253");
}

}  // namespace shards_test
