// Layers of Hugging Face folders, compared with the results of Python's transformers for the same
// weights (tests/hugging_face/hf_figures.py).

#include <ATen/ATen.h>

#include <algorithm>

#include "exec/support/equals_serial.hpp"
#include "exec/support/figures_folder.hpp"
#include "exec/support/run_layers.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/sharded_gpt.hpp"
#include "models/folder_links.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace hugging_face_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::Figures;
using test::FiguresFolder;
using test::formula_tokens;

std::vector<LayerSpec> specs_of(const plan::HuggingFaceShape& shape,
                                Tokens tokens = Tokens::Whole) {
  return builder_of(plan::ModelShape(shape)).layers(shape, {.seed = 1, .tokens = tokens});
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// Maximum differences from transformers.
struct Differences {
  double loss = 0, logits = 0, far = 0, gradients = 0;
  double left = 0;  // of logits after padding on the left
  double half = 0;  // of all logits in bf16, relative
};

at::Tensor outputs(const std::vector<std::shared_ptr<Layer>>& layers, Tensors values) {
  for (const auto& layer : layers)
    values = layer->forward_all(values, {});
  return values.front();
}

/// Returns the difference of logits, without padding.
double of_words(const at::Tensor& logits, const Figures& figures) {
  const at::Tensor words = (figures.at("targets") != -100).unsqueeze(-1);
  return difference(logits * words, figures.at("logits") * words);
}

/// Transformers gets a mask and positions for padding; here, padding is document -1.
double behind_padding(const std::vector<std::shared_ptr<Layer>>& layers, const Figures& figures) {
  const at::Tensor tokens = figures.at("tokens").slice(0, 1, 2);
  const std::int64_t padding = tokens.size(1) - figures.at("logits.left").size(0);
  REQUIRE(padding == 5);
  at::Tensor documents = at::zeros_like(tokens);
  documents.slice(1, 0, padding).fill_(-1);
  return difference(outputs(layers, {tokens, documents})[0].slice(0, padding),
                    figures.at("logits.left"));
}

at::Tensor every_third(const at::Tensor& gradient) {
  constexpr std::int64_t many = 8192;
  return gradient.flatten().slice(0, {}, {}, gradient.numel() <= many ? 3 : 61);
}

/// Returns gradients as tensors of the folder.
Figures gradients_in_folder(const plan::HuggingFaceShape& shape,
                            const std::vector<std::shared_ptr<Layer>>& layers) {
  Figures all;
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (const FolderLink& link : folder_links(shape, static_cast<int>(layer))) {
      const auto parameters = layers[layer]->named_parameters();
      at::Tensor own = parameters[link.parameter].grad();
      if (!own.defined())
        continue;
      if (link.expert >= 0)
        own = own[link.expert];
      at::Tensor& whole = all.try_emplace(link.tensor, at::zeros(link.sizes)).first->second;
      link.part_in(whole).add_(own);
    }
  return all;
}

Differences differences(const FiguresFolder& folder) {
  const Figures figures = folder.figures();
  const auto shape = folder.shape();
  const auto specs = specs_of(shape);
  const auto layers = test::build_all(specs);
  const at::Tensor logits = outputs(layers, {figures.at("tokens")});
  const at::Tensor loss = cross_entropy({logits}, {figures.at("targets")});
  loss.backward();
  Differences found{.loss = std::abs(loss.item<double>() - figures.at("loss").item<double>()),
                    .logits = of_words(logits.detach(), figures)};
  std::size_t compared = 0;
  for (const auto& [name, gradient] : gradients_in_folder(shape, layers)) {
    INFO(name);
    REQUIRE(figures.contains("gradient." + name));
    found.gradients = std::max({found.gradients,
                                difference(every_third(gradient), figures.at("gradient." + name)),
                                std::abs(gradient.to(at::kDouble).norm().item<double>() -
                                         figures.at("norm." + name).item<double>())});
    ++compared;
  }
  const auto expected = std::count_if(figures.begin(), figures.end(), [](const auto& figure) {
    return figure.first.starts_with("gradient.");
  });
  CHECK(compared == static_cast<std::size_t>(expected));

  const at::NoGradGuard no_grad;
  const int words = shape.transformer.config.vocabulary;
  const at::Tensor far = outputs(layers, {formula_tokens("long", 1, 1501, words)});
  found.far = difference(far[0].slice(0, 1501 - 3), figures.at("logits.long"));
  found.left = behind_padding(layers, figures);
  for (const auto& layer : layers)
    layer->to(at::kBFloat16);
  const at::Tensor& half = figures.at("logits.bf16");
  const at::Tensor own_half = outputs(layers, {figures.at("tokens").slice(0, 0, 1)}).to(at::kFloat);
  found.half = ((own_half - half).norm() / half.norm()).item<double>();
  return found;
}

TEST_CASE("Logits and gradients of each family equal those of transformers", "[exec][models]") {
  const auto names = test::figures_folders();
  CHECK(names.size() >= 17);
  for (const std::string& name : names) {
    const Differences found = differences(FiguresFolder(name));
    INFO(name);
    CHECK(found.loss < 1e-5);
    CHECK(found.logits < 1e-5);
    CHECK(found.far < 1e-5);
    CHECK(found.left < 1e-5);
    CHECK(found.gradients < 1e-5);
    CHECK(found.half < 2e-2);
  }
}

TEST_CASE("A table shows the differences of each family from transformers", "[.hf-figures]") {
  for (const std::string& name : test::figures_folders()) {
    const Differences found = differences(FiguresFolder(name));
    fmt::print("| {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |\n", name, found.loss,
               found.logits, found.left, found.far, found.gradients, found.half);
    CHECK(found.loss >= 0);
  }
}

TEST_CASE("Each layer of a folder has the parameters that the planner counts", "[exec][models]") {
  for (const std::string& name : test::figures_folders()) {
    const FiguresFolder folder(name);
    const auto shape = folder.shape();
    const auto counted = plan::layers_of(plan::training_of(shape.transformer, 1));
    const auto layers = test::build_all(specs_of(shape));
    REQUIRE(layers.size() == counted.size());
    std::int64_t all = 0, in_folder = 0;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      INFO(name << " " << counted[layer].name);
      std::int64_t numbers = 0;
      for (const at::Tensor& parameter : layers[layer]->parameters())
        numbers += parameter.numel();
      CHECK(numbers == counted[layer].parameters);
      all += numbers - counted[layer].tied_parameters;
    }
    for (const auto& [tensor, value] : folder.weights())
      in_folder += value.numel();
    CHECK(all == in_folder);
  }
}

/// The batches of `twenty_steps`: two microbatches of two rows.
class StepTokens final : public Dataset {
 public:
  explicit StepTokens(int vocabulary) : vocabulary_(vocabulary) {}
  at::Tensor input(int step, int microbatch) const override {
    return rows(step, microbatch).slice(1, 0, 23);
  }
  at::Tensor target(int step, int microbatch) const override {
    return rows(step, microbatch).slice(1, 1);
  }

 private:
  at::Tensor rows(int step, int microbatch) const {
    return formula_tokens(fmt::format("step {}", step), 4, 24, vocabulary_)
        .slice(0, 2 * microbatch, 2 * microbatch + 2);
  }
  int vocabulary_;
};

TrainingSetup fine_tuning(const plan::HuggingFaceShape& shape, const Dataset& data) {
  TrainingSetup setup{.layers = specs_of(shape), .loss = cross_entropy, .data = &data};
  setup.optimizer = {.kind = plan::Optimizer::AdamW, .learning_rate = 1e-3, .weight_decay = 0.01};
  setup.microbatch_size = 2;
  return setup;
}

TEST_CASE("Twenty steps of fine-tuning have the losses of transformers", "[exec][models]") {
  for (const std::string& name : test::figures_folders()) {
    const FiguresFolder folder(name);
    const auto shape = folder.shape();
    const StepTokens data(shape.transformer.config.vocabulary);
    SerialTrainer serial(fine_tuning(shape, data), /*microbatches=*/2);
    const at::Tensor losses = folder.figures().at("losses");
    for (int step = 0; step < 20; ++step) {
      INFO(name << ", step " << step);
      CHECK(serial.step(step).loss == Approx(losses[step].item<double>()).margin(1e-4).epsilon(0));
    }
  }
}

TEST_CASE("Pipelines and tensor parallelism of a folder are bit-identical to serial training",
          "[exec][models]") {
  for (const std::string& name : test::figures_folders()) {
    const FiguresFolder folder(name);
    const auto shape = folder.shape();
    const StepTokens data(shape.transformer.config.vocabulary);
    const auto schedule = test::make("1f1b", 2, 2);
    const bool tied = shape.transformer.config.tied;
    const plan::Partition partition{
        plan::uniform_boundaries(shape.transformer.config.layers + 2, 2)};
    for (const int shards : {1, 2}) {
      if (!plan::faults_of_transformer_cut(shape.transformer, shards).empty())
        continue;
      INFO(name << " on " << shards << " shards");
      const test::Sizes sizes{schedule, 1, shards};
      auto setup = fine_tuning(shape, data);
      setup.tensor_groups = 2 / (3 - shards);
      const auto program =
          plan::lower(schedule, {.tied_stages = tied ? std::vector{0, 1} : std::vector<int>{},
                                 .whole_stages = 3,
                                 .share_loss = true});
      test::check_equals_serial(program, partition, setup, sizes.options(), /*steps=*/2);
    }
  }
}

/// Checks that the tensor-parallel rank's parameters in every layer are its parts of the whole
/// ones.
std::size_t check_parts(const std::vector<LayerSpec>& specs, const TensorParallelPlace& place) {
  std::size_t cut_parameters = 0;
  for (int index = 0; index < static_cast<int>(specs.size()); ++index) {
    const auto whole = build_layer(specs, index, 1), shard = build_layer(specs, index, 1, place);
    const auto cuts = shard->cut_parameters();
    for (const auto& named : shard->named_parameters()) {
      INFO("layer " << index << ", " << named.key());
      const at::Tensor all = whole->named_parameters()[named.key()];
      const auto cut = std::find_if(cuts.begin(), cuts.end(), [&](const CutParameter& one) {
        return one.name == named.key();
      });
      const at::Tensor expected =
          cut == cuts.end() ? all : part_of(all, *cut, seat_of(*cut, place));
      CHECK(at::equal(named.value(), expected));
      cut_parameters += cut == cuts.end() ? 0 : 1;
    }
  }
  return cut_parameters;
}

TEST_CASE("Tensor-parallel and expert-parallel ranks load their parts of a folder's tensors",
          "[exec][models]") {
  const at::NoGradGuard no_grad;
  for (const char* name : {"mixtral", "deepseek-v3", "qwen2", "gpt2"}) {
    const FiguresFolder folder(name);
    const auto specs = specs_of(folder.shape());
    const int ranks = folder.shape().transformer.config.has_mixture() ? 2 : 1;
    for (const int shard : {0, 1})
      for (int expert = 0; expert < ranks; ++expert) {
        INFO(name << ", shard " << shard << ", experts " << expert);
        CHECK(check_parts(specs, {.index = shard,
                                  .count = 2,
                                  .groups = 2,
                                  .experts = {.index = expert, .count = ranks}}) >= 14);
      }
  }
}

std::string refusal(const FiguresFolder& folder, const Figures& weights) {
  folder.write(weights);
  const std::string error = test::error_of([&] { specs_of(folder.shape()); });
  const std::string path = folder.path().string();
  std::string shown;
  for (std::size_t at = 0; at < error.size();)
    if (error.compare(at, path.size(), path) == 0) {
      shown += "DIR";
      at += path.size();
    } else {
      shown += error[at++];
    }
  return shown;
}

TEST_CASE("Weights that do not fit the config are rejected by name", "[exec][models]") {
  const FiguresFolder folder("llama2");
  const auto without = [&](const std::string& name) {
    Figures weights = folder.weights();
    weights.erase(name);
    return weights;
  };
  CHECK(refusal(folder, without("model.norm.weight")) ==
        "DIR: tensor 'model.norm.weight' [32] is missing");
  Figures weights = folder.weights();
  weights["model.norm.weight"] = at::ones({31});
  CHECK(refusal(folder, weights) ==
        "DIR/model.safetensors: tensor 'model.norm.weight' is [31], but config.json requires [32]");
  weights["model.norm.weight"] = at::ones({32}, at::kInt);
  CHECK(refusal(folder, weights) ==
        "DIR/model.safetensors: tensor 'model.norm.weight' has type int32; float32, bfloat16, "
        "float16 and float64 are supported");
  weights = folder.weights();
  weights["model.layers.0.self_attn.q_norm.weight"] = at::ones({8});
  CHECK(refusal(folder, weights) ==
        "DIR/model.safetensors: tensor 'model.layers.0.self_attn.q_norm.weight' [8] is not used by "
        "any of the 2 layers of the llama that config.json describes");
  weights = folder.weights();
  weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::ones({4});
  CHECK(refusal(folder, weights) == "no error");
}

TEST_CASE("A head that differs from the embedding to which it is tied is rejected",
          "[exec][models]") {
  const FiguresFolder folder("qwen2");
  Figures weights = folder.weights();
  REQUIRE_FALSE(weights.contains("lm_head.weight"));
  weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone();
  CHECK(refusal(folder, weights) == "no error");
  weights["lm_head.weight"][0][0] += 1;
  CHECK(refusal(folder, weights) ==
        "DIR/model.safetensors: tensor 'lm_head.weight' differs from 'model.embed_tokens.weight', "
        "to which config.json ties it. Set \"tie_word_embeddings\" to false to train a separate "
        "head, or remove the tensor");
}

TEST_CASE("Tensors of layers that the config does not have are rejected, except predictors",
          "[exec][models]") {
  for (const auto& [name, layers] : {std::pair("llama2", 2), std::pair("deepseek-v3", 3)}) {
    const FiguresFolder folder(name);  // deepseek-v3 has two layers and a predictor
    Figures weights = folder.weights();
    const auto with = [&](int layer) {
      Figures more = weights;
      more[fmt::format("model.layers.{}.input_layernorm.weight", layer)] = at::ones({32});
      return refusal(folder, more);
    };
    CHECK(with(layers).find("is not used by any of the 2 layers") != std::string::npos);
    if (layers > 2)
      CHECK(with(2) == "no error");
  }
}

TEST_CASE("A folder without weights is initialized randomly", "[exec][models]") {
  const FiguresFolder folder("llama2");
  std::filesystem::remove(folder.path() / "model.safetensors");
  const auto specs = specs_of(folder.shape());
  CHECK_FALSE(specs.front().fill);
  const auto a = build_layer(specs, 1, 1), b = build_layer(specs, 1, 2);
  CHECK_FALSE(at::equal(a->parameters()[1], b->parameters()[1]));
}

}  // namespace hugging_face_test
