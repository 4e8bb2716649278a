// The decoder of scenarios, compared with one written out by formulas with the same weights, and
// the fields of a transformer that cannot be trained.

#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "exec/support/run_layers.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace transformer_test {

using namespace pipewright;
using namespace pipewright::engine;
using namespace pipewright::exec;
using plan::TransformerConfig;
using test::error_of;

/// Weights of one layer, by name.
using Weights = std::map<std::string, at::Tensor>;

at::Tensor normed(const TransformerConfig& c, const at::Tensor& x, const Weights& w,
                  const std::string& name) {
  const at::Tensor& weight = w.at(name + ".weight");
  if (c.norm == plan::NormKind::Root)
    return x / (x.square().mean(-1, /*keepdim=*/true) + 1e-5).sqrt() * weight;
  const at::Tensor centered = x - x.mean(-1, /*keepdim=*/true);
  const at::Tensor variance = centered.square().mean(-1, /*keepdim=*/true);
  return centered / (variance + 1e-5).sqrt() * weight + w.at(name + ".bias");
}

at::Tensor linear(const at::Tensor& x, const Weights& w, const std::string& name) {
  const at::Tensor product = at::matmul(x, w.at(name + ".weight").t());
  return w.contains(name + ".bias") ? product + w.at(name + ".bias") : product;
}

/// Converts [batch, sequence, heads * channels] to [batch, heads, sequence, channels].
at::Tensor by_head(const at::Tensor& x, int heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

/// Channel i and the channel half a head later form a point, rotated by position / 10000^(2i /
/// channels).
at::Tensor turned(const at::Tensor& x) {
  const std::int64_t half = x.size(3) / 2;
  at::Tensor angles = at::empty({x.size(2), half});
  for (std::int64_t position = 0; position < x.size(2); ++position)
    for (std::int64_t i = 0; i < half; ++i)
      angles[position][i] = static_cast<double>(position) /
                            std::pow(10000.0, 2.0 * static_cast<double>(i) / (2.0 * half));
  const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  return at::cat({a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()}, 3);
}

at::Tensor attention(const TransformerConfig& c, const at::Tensor& x, const Weights& w) {
  at::Tensor queries = by_head(linear(x, w, "attention.query"), c.heads);
  at::Tensor keys = by_head(linear(x, w, "attention.key"), c.kv_heads);
  const at::Tensor values = by_head(linear(x, w, "attention.value"), c.kv_heads);
  if (c.head_norms) {
    queries = normed(c, queries, w, "attention.query_norm");
    keys = normed(c, keys, w, "attention.key_norm");
  }
  if (!c.learned_positions) {
    queries = turned(queries);
    keys = turned(keys);
  }
  const at::Tensor later =
      at::ones({x.size(1), x.size(1)}, at::kBool).triu(/*diagonal=*/1);  // later than the query's
                                                                         // token
  std::vector<at::Tensor> mixed;
  for (int head = 0; head < c.heads; ++head) {
    const int shared = head / (c.heads / c.kv_heads);
    const at::Tensor scores =
        at::matmul(queries.select(1, head), keys.select(1, shared).transpose(1, 2)) /
        std::sqrt(static_cast<double>(c.head_channels));
    mixed.push_back(at::matmul(at::softmax(scores.masked_fill(later, -INFINITY), -1),
                               values.select(1, shared)));
  }
  return linear(at::cat(mixed, -1), w, "attention.project");
}

at::Tensor feed_forward(const TransformerConfig& c, const at::Tensor& x, const Weights& w,
                        const std::string& name) {
  const at::Tensor up = linear(x, w, name + ".up");
  if (!c.gated)
    return linear(up * 0.5 * (1 + at::erf(up / std::sqrt(2.0))), w, name + ".down");
  const at::Tensor gate = linear(x, w, name + ".gate");
  return linear(gate * at::sigmoid(gate) * up, w, name + ".down");
}

/// Returns one of a mixture's experts as a feed-forward.
Weights expert_of(const Weights& w, int expert) {
  Weights one;
  for (const std::string part : {"up", "gate", "down"})
    for (const std::string kind : {".weight", ".bias"})
      if (const auto all = w.find("feed_forward." + part + kind); all != w.end())
        one["expert." + part + kind] = all->second[expert];
  if (const auto biases = w.find("feed_forward.down_bias.weight"); biases != w.end())
    one["expert.down.bias"] = biases->second.select(1, expert);
  return one;
}

/// Computes token by token: all experts' probabilities, of which the largest are normalized to sum
/// to 1.
at::Tensor mixture(const TransformerConfig& c, const at::Tensor& x, const Weights& w) {
  const at::Tensor probabilities = at::softmax(linear(x, w, "feed_forward.router"), -1);
  Tensors tokens;
  for (std::int64_t t = 0; t < x.size(0) * x.size(1); ++t) {
    const at::Tensor token = x.flatten(0, 1)[t], of_token = probabilities.flatten(0, 1)[t];
    const at::Tensor ranked = at::argsort(of_token, -1, /*descending=*/true);
    at::Tensor sum = at::zeros_like(token), chosen = at::zeros({1});
    for (int choice = 0; choice < c.experts_per_token; ++choice) {
      const int expert = ranked[choice].item<int>();
      sum = sum + of_token[expert] * feed_forward(c, token, expert_of(w, expert), "expert");
      chosen = chosen + of_token[expert];
    }
    tokens.push_back(sum / chosen);
  }
  const at::Tensor routed = at::stack(tokens).view_as(x);
  return c.shared_feed_forward == 0 ? routed
                                    : routed + feed_forward(c, x, w, "feed_forward.shared");
}

/// Returns the logits.
at::Tensor written_out(const TransformerConfig& c, const at::Tensor& tokens,
                       const std::vector<Weights>& layers) {
  at::Tensor x = at::embedding(layers.front().at("tokens.weight"), tokens);
  if (c.learned_positions)
    x = x + layers.front().at("positions.weight").narrow(0, 0, tokens.size(1));
  for (int layer = 1; layer <= c.layers; ++layer) {
    const Weights& w = layers[static_cast<std::size_t>(layer)];
    x = x + attention(c, normed(c, x, w, "norm1"), w);
    const at::Tensor normed_x = normed(c, x, w, "norm2");
    x = x + (c.has_experts(layer - 1) ? mixture(c, normed_x, w)
                                      : feed_forward(c, normed_x, w, "feed_forward"));
  }
  return linear(normed(c, x, layers.back(), "norm"), layers.back(), "logits");
}

/// Sets values that no initializer gives to norms and biases.
void stir(const std::vector<std::shared_ptr<Layer>>& layers) {
  const at::NoGradGuard no_grad;
  double phase = 0;
  for (const auto& layer : layers)
    for (at::Tensor& parameter : layer->parameters())
      parameter.add_(
          at::sin(at::arange(parameter.numel(), at::kFloat) + ++phase).view(parameter.sizes()),
          /*alpha=*/0.1);
}

TEST_CASE("Losses and gradients equal those of a decoder written out by formulas",
          "[exec][models]") {
  const test::SyntheticTokens data;
  for (const auto& [name, shape] : test::all_small_transformers()) {
    const auto layers = test::build_all(transformer_layers(shape));
    stir(layers);
    std::vector<Weights> copies;
    for (const auto& layer : layers) {
      Weights& weights = copies.emplace_back();
      for (const auto& named : layer->named_parameters())
        weights[named.key()] = named.value().detach().clone().requires_grad_();
    }
    Tensors values{data.input(0, 0)};
    for (const auto& layer : layers)
      values = layer->forward_all(values, {});
    const at::Tensor loss = cross_entropy(values, {data.target(0, 0)});
    const at::Tensor expected =
        cross_entropy({written_out(shape.config, data.input(0, 0), copies)}, {data.target(0, 0)});
    INFO(name);
    CHECK(loss.item<double>() == Approx(expected.item<double>()).epsilon(1e-6));
    loss.backward();
    expected.backward();
    std::size_t compared = 0;
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (const auto& named : layers[layer]->named_parameters()) {
        INFO("layer " << layer << " " << named.key());
        CHECK(at::allclose(named.value().grad(), copies[layer].at(named.key()).grad(),
                           /*rtol=*/1e-5, /*atol=*/1e-6));
        ++compared;
      }
    CHECK(compared >= 38);
  }
}

TEST_CASE("Each layer has the parameters that the planner counts", "[exec][models]") {
  for (const auto& [name, shape] : test::all_small_transformers()) {
    const auto counted = plan::layers_of(plan::training_of(shape, 1));
    const auto layers = test::build_all(transformer_layers(shape));
    REQUIRE(layers.size() == counted.size());
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      INFO(name << " " << counted[layer].name);
      std::int64_t numbers = 0;
      for (const at::Tensor& parameter : layers[layer]->parameters())
        numbers += parameter.numel();
      CHECK(numbers == counted[layer].parameters);
    }
  }
}

TEST_CASE("A tied head starts with the embedding's weights", "[exec][models]") {
  const auto layers = test::build_all(transformer_layers(test::small_gpt2()));
  CHECK(at::equal(*layers.front()->named_parameters().find("tokens.weight"),
                  *layers.back()->named_parameters().find("logits.weight")));
}

TEST_CASE("Transformer fields that cannot be trained are named", "[exec][models]") {
  const auto refusal = [](auto&& change) {
    plan::TransformerShape shape = test::small_llama();
    change(shape);
    return error_of([&] { transformer_layers(shape); });
  };
  const auto named = [](const char* field) {
    return fmt::format(
        "a transformer with these values of {} cannot be trained, only planned and predicted",
        field);
  };
  CHECK(refusal([](auto& s) { s.config.set_mixture_behind(1); }) ==
        named("experts, experts_per_token, expert_feed_forward"));
  CHECK(refusal([](auto& s) {
          s.config.kv_rank = 4;
          s.config.rope_channels = 3;
          s.config.head_norms = true;
        }) == named("head_norms, rope_channels"));
  CHECK(refusal([](auto& s) {
          s.config.norm = plan::NormKind::Layer;
          s.config.norm_plus_one = true;
        }) == named("norm_plus_one"));
  CHECK(refusal([](auto& s) {
          s.config.rotary.scaling = plan::RotaryScaling::Long;
          s.config.rotary.shorts = {1, 1, 1};
        }) == named("rotary_long_factors"));
  CHECK(refusal([](auto& s) { s.config.vocabulary_multiple = 128; }) ==
        named("vocabulary_multiple"));
  CHECK(refusal([](auto& s) { s.config.head_channels = 5; }) == named("head_channels"));
  CHECK(refusal([](auto& s) {
          s.config.dropout = true;
          s.products = plan::ProductPrecision::Float8;
          s.attention = plan::AttentionKind::Scores;
        }) == named("dropout, attention, product_precision"));
}

TEST_CASE("Numbers of parts that heads do not divide into are rejected with valid ones",
          "[exec][models]") {
  const auto specs = transformer_layers(test::small_llama());
  CHECK(error_of([&] { build_layer(specs, 1, 0, {.index = 0, .count = 8, .groups = 8}); }) ==
        "layer layer0: 8 heads, 4 of them of keys and values, a feed-forward of 43 and a "
        "vocabulary of 37 cannot be divided into 8 parts: heads must divide evenly, and no other "
        "part be empty; 4 would do");
}

}  // namespace transformer_test
