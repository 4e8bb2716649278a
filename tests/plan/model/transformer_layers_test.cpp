#include "pipewright/plan/model/transformer_layers.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace transformer_layers_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

TransformerConfig shipped(const std::string& name) {
  return transformer_from_config(
      JsonDocument::read(PIPEWRIGHT_TEST_DATA_DIR "/models/" + name + ".json"));
}

/// A model like GPT-3 with few layers, and the width of the papers' formulas.
TransformerConfig gpt(int hidden, int heads) {
  TransformerConfig config;
  config.layers = 2;
  config.hidden = hidden;
  config.heads = config.kv_heads = heads;
  config.head_channels = config.value_channels = hidden / heads;
  config.feed_forward = 4 * hidden;
  config.vocabulary = 51200;
  config.longest = 2048;
  config.learned_positions = config.tied = config.dropout = true;
  config.norm = NormKind::Layer;
  config.query_bias = config.projection_bias = config.feed_forward_bias = true;
  return config;
}

TEST_CASE("A GPT's layer has the parameters and FLOPs of Narayanan et al.", "[plan][model]") {
  const double h = 1024, s = 2048, b = 4, v = 51200;
  const auto layers = layers_of({.model = gpt(1024, 16), .sequence = 2048}, {.microbatch = 4});
  REQUIRE(layers.size() == 4);
  CHECK(layers[1].parameters == 12 * 1024 * 1024 + 13 * 1024);
  CHECK(layers[1].product_flops == 24 * b * s * h * h);
  CHECK(layers[1].attention_flops == 4 * b * s * s * h);
  CHECK(layers[3].product_flops == 2 * b * s * h * v);
  CHECK(layers[0].product_flops == 0);
  CHECK(layers[1].output == Bytes{2 * 4 * 2048 * 1024});
  // 12 l h² (1 + 13/(12h) + (V + s)/(12 l h)), and the last norm.
  CHECK(total_of(layers).parameters ==
        2 * (12 * 1024 * 1024 + 13 * 1024) + (51200 + 2048) * 1024 + 2 * 1024);
}

TEST_CASE(
    "A GPT's layer saves the bytes of Korthikanti et al., with and without each kind of "
    "parallelism",
    "[plan][model]") {
  const std::int64_t h = 1024, a = 16, s = 2048, b = 4, t = 4, sbh = s * b * h;
  const auto config = gpt(1024, 16);
  const auto block = [&](int tensor, bool sequence_parallel) {
    return layers_of(
        {.model = config, .sequence = 2048, .attention = AttentionKind::Scores},
        {.tensor = tensor, .sequence_parallel = sequence_parallel, .microbatch = 4})[1];
  };
  const std::int64_t scores = 5 * a * s * s * b;
  CHECK(block(1, false).kept == Bytes{34 * sbh + scores});
  CHECK(block(t, false).kept == Bytes{10 * sbh + 24 * sbh / t + scores / t});
  CHECK(block(t, true).kept == Bytes{34 * sbh / t + scores / t});
  CHECK(block(t, true).kept_selective == Bytes{34 * sbh / t});
  CHECK(block(1, false).kept_full == Bytes{2 * sbh});
  CHECK(block(t, true).kept_under(RecomputeMode::Full) == Bytes{2 * sbh / t});
  const auto layers = layers_of({.model = config, .sequence = 2048}, {.microbatch = 4});
  CHECK(layers[0].kept == Bytes{sbh});
  CHECK(layers[3].kept == Bytes{4 * sbh + 4 * s * b * 51200});
  CHECK(layers[1].kept == layers[1].kept_selective);  // a fused kernel saves no scores
}

TEST_CASE(
    "Tensor-parallel devices divide a layer's parameters and FLOPs, except norms, routers and "
    "latent projections",
    "[plan][model]") {
  for (const char* name : {"llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gpt2-xl"}) {
    CAPTURE(name);
    const auto config = shipped(name);
    const int t = config.heads % 4 == 0 ? 4 : 5;
    const auto whole = layers_of({.model = config, .sequence = 1000});
    const auto cut =
        layers_of({.model = config, .sequence = 1000}, {.tensor = t, .sequence_parallel = true});
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const double parts = static_cast<double>(whole[at].parameters) /
                           static_cast<double>(cut[at].device_parameters);
      CHECK(parts <= t);
      CHECK(parts > 0.8 * t);
      CHECK(cut[at].parameters == whole[at].parameters);
      if (at > 0 && at + 1 < whole.size())  // else the vocabulary is padded
        CHECK(cut[at].forward_flops() * t == Approx(whole[at].forward_flops()));
      CHECK(cut[at].device_expert_parameters * t == whole[at].expert_parameters);
    }
  }
}

TEST_CASE("A device of an expert-parallel group holds its experts and computes as much as before",
          "[plan][model]") {
  const auto config = shipped("mixtral-8x7b");
  const auto whole = layers_of({.model = config, .sequence = 4096});
  const auto cut = layers_of({.model = config, .sequence = 4096}, {.expert = 8});
  CHECK(cut[1].device_expert_parameters * 8 == whole[1].expert_parameters);
  CHECK(cut[1].device_parameters - cut[1].device_expert_parameters ==
        whole[1].device_parameters - whole[1].device_expert_parameters);
  CHECK(cut[1].product_flops == whole[1].product_flops);
  CHECK(cut[1].kept == whole[1].kept);
}

TEST_CASE("Devices of a context-parallel group divide the tokens and have all parameters",
          "[plan][model]") {
  const auto config = shipped("llama-3-8b");
  const auto whole = layers_of({.model = config, .sequence = 8192});
  const auto cut = layers_of({.model = config, .sequence = 8192}, {.context = 4});
  CHECK(cut[1].device_parameters == whole[1].device_parameters);
  CHECK(cut[1].product_flops * 4 == whole[1].product_flops);
  CHECK(cut[1].attention_flops * 4 == whole[1].attention_flops);
  CHECK(cut[1].kept.value * 4 == whole[1].kept.value);
  CHECK(cut[1].output.value * 4 == whole[1].output.value);
}

TEST_CASE("With more devices than key-value heads, several hold the same heads", "[plan][model]") {
  const auto config = shipped("llama-3-8b");  // 8 key-value heads
  const auto layer = layers_of({.model = config}, {.tensor = 16})[1];
  const std::int64_t h = 4096, keys = 2 * h * 1024;
  CHECK(layer.device_parameters == (2 * h * h) / 16 + keys / 8 + 3 * h * 14336 / 16 + 2 * h);
}

TEST_CASE("A window limits the tokens in the attention's products", "[plan][model]") {
  const auto config = shipped("mistral-7b-v0.1");  // window of 4096 tokens
  const auto layer = layers_of({.model = config, .sequence = 16384})[1];
  CHECK(layer.attention_flops == 4.0 * 16384 * 4096 * 4096);
}

TEST_CASE("Sizes that do not divide evenly are rejected with the nearest that do",
          "[plan][model]") {
  const auto refusal = [](const char* name, const Cut& cut, TransformerTraining training = {}) {
    training.model = shipped(name);
    return error_of([&] { layers_of(training, cut); });
  };
  CHECK(refusal("llama-3-8b", {.tensor = 3}) ==
        "a tensor size of 3 does not divide 32 heads, 8 of them of keys and values; 2 or 4 would "
        "do");
  CHECK(refusal("deepseek-v3", {.tensor = 256, .expert = 24}) ==
        "a tensor size of 256 does not divide 128 heads; 128 would do\n"
        "an expert size of 24 does not divide 256 experts; 16 or 32 would do");
  CHECK(refusal("llama-3-8b", {.expert = 2}) ==
        "an expert size of 2 was asked for, but the model has no experts");
  CHECK(refusal("llama-3-8b", {.context = 3}, {.sequence = 4096}) ==
        "a context size of 3 does not divide a sequence of 4096; 2 or 4 would do");
  CHECK(refusal("llama-3-8b", {.tensor = 8, .sequence_parallel = true}, {.sequence = 1001}) ==
        "1001 tokens of a device do not divide among the 8 that cut them between tensor cuts");
  CHECK(refusal("gpt2", {}, {.sequence = 2048}) ==
        "a sequence of 2048 is longer than the 1024 positions that it learns");
  CHECK(refusal("llama-3-8b", {}, {.predictions = true}) ==
        "the model has no modules that predict further tokens");
}

TEST_CASE("A transformer can be partitioned, written and read as a Model", "[plan][model]") {
  const Model model = transformer_model(shipped("gpt2"), 1024);
  REQUIRE(model.layers.size() == 14);
  CHECK(model.layers.front().tied_key == model.layers.back().tied_key);
  CHECK(model.layers.back().output_shape == std::vector<int>{1024, 50257});
  CHECK(model.layers[1].checkpointable);
  CHECK(model.layers[1].parameter_bytes == Bytes{2 * 7'087'872});
  CHECK(model_from_json(JsonDocument::parse(to_json(model).dump(), "model.json")) == model);
}

}  // namespace transformer_layers_test
