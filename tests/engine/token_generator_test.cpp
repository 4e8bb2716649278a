// Generation with a KV cache on several stages, compared with one process that recomputes each
// prefix.

#include "pipewright/engine/token_generator.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "exec/support/figures_folder.hpp"
#include "exec/support/processes.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace token_generator_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
using test::Ranks;
using test::say;

/// Scales the weights up, so that the visible tokens determine the next one.
std::vector<LayerSpec> strong(std::vector<LayerSpec> layers) {
  for (LayerSpec& layer : layers)
    layer.build = [build = layer.build] {
      const at::NoGradGuard no_grad;
      auto built = build();
      for (const at::Tensor& parameter : built->parameters())
        if (parameter.dim() > 1)
          parameter.mul_(4);
      return built;
    };
  return layers;
}

PipelineModule module_of(const std::vector<LayerSpec>& layers, int ranks) {
  return {layers,
          {.topology = plan::pipe_data_topology(ranks, 1),
           .partition = std::string("uniform"),
           .base_seed = 2}};
}

const std::vector<Sequence> prompts{{5, 11, 2}, {7}, {1, 30}, {19, 0, 8}, {3}};

/// Generates in one process without a cache: recomputes the whole prefix for each token.
std::vector<Sequence> anew(const std::vector<LayerSpec>& specs, const std::vector<Sequence>& of,
                           const GenerationOptions& options) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  std::vector<std::shared_ptr<Layer>> layers;
  for (int index = 0; index < static_cast<int>(specs.size()); ++index) {
    layers.push_back(build_layer(specs, index, /*base_seed=*/2));
    layers.back()->eval();
  }
  std::vector<Sequence> all;
  for (std::size_t number = 0; number < of.size(); ++number) {
    Sequence tokens = of[number];
    Sequence& added = all.emplace_back();
    while (std::ssize(added) < options.new_tokens) {
      Tensors values{at::tensor(tokens, at::kLong).unsqueeze(0)};
      for (const auto& layer : layers)
        values = layer->forward_all(values, {.training = false});
      added.push_back(choose_token(values.at(0)[0][-1], options.choice,
                                   static_cast<std::int64_t>(number), std::ssize(tokens)));
      tokens.push_back(added.back());
      if (std::find(options.stop.begin(), options.stop.end(), added.back()) != options.stop.end())
        break;
    }
  }
  return all;
}

void check_on_stages(const std::vector<LayerSpec>& layers, const std::vector<Sequence>& of,
                     GenerationOptions options) {
  for (const double temperature : {0.0, 0.9}) {
    options.choice.temperature = temperature;
    const auto expected = anew(layers, of, options);
    for (const int ranks : {1, 2, 4}) {
      CAPTURE(temperature, ranks);
      TokenGenerator generator(module_of(layers, std::min(ranks, static_cast<int>(layers.size()))));
      CHECK(generator.generate(of, options) == expected);
    }
  }
}

/// Returns further variants of decoder layers that the small transformers do not have.
test::NamedShapes further_shapes() {
  test::NamedShapes all;
  const auto add = [&](const char* name, auto change, plan::TransformerShape shape) {
    change(shape.config);
    all.emplace_back(name, shape);
  };
  add(
      "windows, caps, norms behind",
      [](plan::TransformerConfig& c) {
        c.window = 3;
        c.windowed = {true, false, true, false};
        c.rotary.window_base = 500;
        c.score_cap = 2;
        c.logit_cap = 5;
        c.score_scale = 0.3;
        c.post_norms = c.norm_plus_one = true;
        c.embedding_scale = 4;
      },
      test::small_llama());
  add(
      "latent",
      [](plan::TransformerConfig& c) {
        c.kv_heads = c.heads;
        c.q_rank = 9;
        c.kv_rank = 7;
        c.rope_channels = 4;
        c.latent_norms = c.rotary.neighbors = true;
      },
      test::small_llama());
  add(
      "a window in all layers", [](plan::TransformerConfig& c) { c.window = 2; },
      test::small_qwen());
  add(
      "values wider than keys", [](plan::TransformerConfig& c) { c.value_channels = 9; },
      test::small_llama());
  for (const auto scaling :
       {plan::RotaryScaling::Linear, plan::RotaryScaling::Llama3, plan::RotaryScaling::Yarn})
    add(
        "scaled",
        [=](plan::TransformerConfig& c) {
          c.rotary.scaling = scaling;
          c.rotary.factor = 3;
          c.rotary.longest = 4;
          c.rotary.share = 0.7;
          c.rotary.magnitude = 1.2;
        },
        test::small_llama());
  return all;
}

TEST_CASE("A transformer's stages generate the same as one process without a cache", "[exec]") {
  auto shapes = test::all_small_transformers();
  for (auto& shape : further_shapes())
    shapes.push_back(std::move(shape));
  for (const auto& [name, shape] : shapes) {
    CAPTURE(name);
    check_on_stages(strong(transformer_layers(shape)), prompts,
                    {.new_tokens = 6, .choice = {.seed = 3}});
  }
}

TEST_CASE("A GPT's stages generate the same as one process without a cache", "[exec]") {
  std::vector<Sequence> in_vocabulary = prompts;
  check_on_stages(strong(gpt_layers(test::small_shape)), in_vocabulary,
                  {.new_tokens = 6, .choice = {.top_k = 4, .seed = 3}});
}

TEST_CASE("Hugging Face folders generate the same as one process without a cache", "[exec]") {
  for (const std::string& name : test::figures_folders()) {
    CAPTURE(name);
    const test::FiguresFolder folder(name);
    const auto shape = folder.shape();
    check_on_stages(builder_of(plan::ModelShape(shape)).layers(shape, {.seed = 1}),
                    {{5, 11, 2, 9}, {7}, {1, 3, 4, 4, 4, 2, 8}},
                    {.new_tokens = 8, .choice = {.top_k = 20, .seed = 1}});
  }
}

/// LongRoPE's rotation depends on the length of the whole sequence.
TEST_CASE("Positions that depend on a sequence's length use its final length", "[exec]") {
  plan::TransformerShape shape = test::small_llama();
  shape.config.rotary.scaling = plan::RotaryScaling::Long;
  shape.config.rotary.longest = 6;
  shape.config.rotary.shorts = {1, 1.5, 2};
  shape.config.rotary.longs = {3, 5, 8};
  const auto layers = strong(transformer_layers(shape));
  const GenerationOptions four{.new_tokens = 4, .choice = {.temperature = 0.8, .seed = 9}};
  const std::vector<Sequence> short_and_long{{1, 2, 3}, {1, 2, 3, 4, 5, 6, 7}, {4, 2}};
  TokenGenerator generator(module_of(layers, 2));
  CHECK(generator.generate(short_and_long, four) == anew(layers, short_and_long, four));
  CHECK(error_of([&] {
          generator.generate({{1, 2, 3, 4}}, four);
        }) ==
        "model.rotary_scaling \"long\": a sequence with a prompt of 4 tokens would grow to 7, but "
        "beyond 6 all its positions use other rotary angles, so its KV cache becomes invalid: use "
        "a longer prompt, or generate fewer tokens");
}

TEST_CASE("A sequence ends with a stop token", "[exec]") {
  const auto layers = strong(transformer_layers(test::small_llama()));
  const GenerationOptions freely{.new_tokens = 12, .choice = {.temperature = 1, .seed = 4}};
  const auto whole = anew(layers, prompts, freely);
  GenerationOptions stopped = freely;
  stopped.stop = {whole[0][3], whole[2][5]};
  const auto expected = anew(layers, prompts, stopped);
  REQUIRE(expected[0].size() < 12);
  REQUIRE(expected[2].size() < 12);
  for (const int ranks : {1, 3}) {
    TokenGenerator generator(module_of(layers, ranks));
    CHECK(generator.generate(prompts, stopped) == expected);
    CHECK(generator.generate(prompts, freely) == whole);
  }
}

TEST_CASE("Sequences in flight do not affect each other", "[exec]") {
  const auto layers = strong(transformer_layers(test::small_qwen()));
  GenerationOptions options{.new_tokens = 7, .choice = {.temperature = 1, .seed = 8}};
  const auto expected = anew(layers, prompts, options);
  TokenGenerator generator(module_of(layers, 2));
  for (const int under_way : {1, 2, 3, 9}) {
    options.under_way = under_way;
    std::vector<Sequence> heard(prompts.size());
    std::vector<std::size_t> order;
    CHECK(generator.generate(prompts, options, [&](std::size_t sequence, std::int64_t token) {
      heard[sequence].push_back(token);
      order.push_back(sequence);
    }) == expected);
    CHECK(heard == expected);
    // Sequences in flight take turns: while one's token passes through the ring, stages work on the
    // others.
    for (std::size_t turn = 0; turn < std::min<std::size_t>(under_way, prompts.size()); ++turn)
      CHECK(order[turn] == turn);
  }
  options.choice.seed = 9;
  CHECK(generator.generate(prompts, options) != expected);
}

TEST_CASE("A generator uses the weights of a training", "[exec]") {
  const auto layers = transformer_layers(test::small_llama());
  PipelineOptions trained{.topology = plan::pipe_data_topology(2, 1),
                          .partition = std::string("uniform"),
                          .loss = cross_entropy,
                          .base_seed = 2};
  PipelineEngine engine(
      {layers, trained},
      {.train_batch_size = 4, .microbatch_size = 2, .optimizer = {.learning_rate = 0.05}});
  const test::SyntheticTokens data;
  engine.set_data(batches_of(data, 2));
  for (int step = 0; step < 5; ++step)
    engine.train_batch();
  const auto snapshot = engine.executor().snapshot(engine.next_step());
  std::vector<LayerSpec> filled = layers;
  for (std::size_t index = 0; index < filled.size(); ++index)
    filled[index].fill = [index, snapshot](Layer& layer, const TensorParallelPlace&) {
      const auto parameters = layer.named_parameters();
      for (const NamedTensor& stored : snapshot.layers.at(index).parameters)
        parameters[stored.name].copy_(stored.value);
    };
  const GenerationOptions options{.new_tokens = 6, .choice = {.temperature = 1}};
  TokenGenerator generator(module_of(layers, 3));
  const auto untrained = generator.generate(prompts, options);
  generator.take_weights(snapshot);
  CHECK(generator.generate(prompts, options) == anew(filled, prompts, options));
  CHECK(generator.generate(prompts, options) != untrained);
}

TEST_CASE("Invalid generation requests are rejected by name", "[exec]") {
  const auto refusal = [](const std::vector<LayerSpec>& layers, const std::vector<Sequence>& of,
                          const GenerationOptions& options) {
    return error_of([&] { TokenGenerator(module_of(layers, 2)).generate(of, options); });
  };
  const auto llama = transformer_layers(test::small_llama());
  std::vector<LayerSpec> other = llama;
  other[2] = function_layer("softly", [](const at::Tensor& x) { return x.tanh(); });
  CHECK(refusal(other, prompts, {}) ==
        "layer softly cannot generate tokens: it is not a GeneratingLayer, as those of the models "
        "gpt, transformer and hf are");
  CHECK(refusal(llama, {{1}, {}}, {}) == "prompt 1 has no tokens: it needs one at least");
  CHECK(refusal(llama, prompts, {.new_tokens = 0}) == "new_tokens is 0, but must be at least 1");
  CHECK(refusal(llama, prompts, {.under_way = -1}) ==
        "under_way is -1, but must be at least 0 (0: chosen by the pipeline)");
  CHECK(
      refusal(transformer_layers(test::small_gpt2()), {{1, 2, 3}}, {.new_tokens = 10}) ==
      "model.max_sequence: there are 11 learned positions, but a sequence would grow to 12 tokens");
  CHECK(refusal(gpt_layers(test::small_shape), {{1, 2, 3}}, {.new_tokens = 7}) ==
        "model.sequence: there are 8 learned positions, but a sequence would grow to 9 tokens");
  TokenGenerator generator(module_of(llama, 2));
  CHECK(error_of([&] {
          generator.generate({{1}, {37}}, {});
        }) == "prompt 1: tokens from 37 to 37 are not all in a vocabulary of 37");
  CHECK(generator.generate({{1}}, {.new_tokens = 2}).at(0).size() == 2);
}

constexpr auto over_gloo = "rank of a generator over Gloo";
const GenerationOptions on_gloo{.new_tokens = 6,
                                .choice = {.temperature = 0.8, .top_k = 9, .seed = 2}};

TEST_CASE(over_gloo, "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    TokenGenerator generator(module_of(strong(transformer_layers(test::small_llama())), job.size()),
                             {.transport = make_gloo_transport(job), .only_rank = job.rank()});
    for (int run = 0; run < 2; ++run)
      for (const Sequence& sequence : generator.generate(prompts, on_gloo))
        say(fmt::format("{}", fmt::join(sequence, " ")));
  } catch (const std::exception& error) {
    say(error.what());
  }
}

TEST_CASE("Ranks over Gloo generate the same as one process without a cache", "[exec]") {
  std::string lines;
  for (const Sequence& sequence :
       anew(strong(transformer_layers(test::small_llama())), prompts, on_gloo))
    lines += fmt::format("{}\n", fmt::join(sequence, " "));
  for (const int size : {2, 4}) {
    Ranks ranks({.size = size, .test_case = over_gloo});
    for (int rank = 0; rank < size; ++rank) {
      CAPTURE(size, rank);
      CHECK(ranks.said(rank) == lines + lines);
      CHECK(ranks.status(rank) == 0);
    }
  }
}

}  // namespace token_generator_test
