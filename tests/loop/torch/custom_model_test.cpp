// Runs a user's own model through the whole loop: an encoder and a decoder with several boundary
// tensors, a mask among them, lengths that differ from microbatch to microbatch, and a loss of two
// parts.

#include "pipewright/loop_torch/custom_model.hpp"

#include <fmt/format.h>
#include <torch/nn.h>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/data/loader.hpp"
#include "pipewright/loop_torch/run_scenario.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace custom_model_test {

using namespace pipewright;
using exec::Tensors;
namespace nn = torch::nn;

struct TranslatorShape {
  static constexpr auto kind = "translator";
  int blocks = 2, width = 12, words = 19;
  bool ragged = false;
  friend bool operator==(const TranslatorShape&, const TranslatorShape&) = default;
};

template <plan::MaybeConst<TranslatorShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("blocks", s.blocks, plan::within({.least = 1, .most = 99}), "Of encoder and decoder each.");
  visit("width", s.width, plan::within({.least = 2, .most = 999}), "Channels.");
  visit("words", s.words, plan::within({.least = 2, .most = 999}), "Of both languages.");
  visit("ragged", s.ragged, plan::any(), "Whether microbatches differ in length.");
}

/// Returns the attention of `queries` to the unmasked part of `known`.
at::Tensor seen(const at::Tensor& queries, const at::Tensor& known, const at::Tensor& mask) {
  const at::Tensor scores = at::matmul(queries, known.transpose(1, 2)) / 4;
  return at::matmul(scores.masked_fill(mask.unsqueeze(1).logical_not(), -1e9).softmax(-1), known);
}

/// Embeds the words of (source words, target words, mask); the mask is returned as it is.
Tensors embedded(nn::Embedding& table, const Tensors& in) {
  return {table->forward(in[0]), table->forward(in[1]), in[2]};
}

std::vector<exec::LayerSpec> translator_layers(const TranslatorShape& shape) {
  const auto linear = [width = shape.width] {
    nn::Linear layer(width, width);
    layer->register_buffer("a_constant", at::ones({2}));  // is not verified
    return layer;
  };
  std::vector<exec::LayerSpec> layers{engine::module_layer(
      "embedding", [shape] { return nn::Embedding(shape.words, shape.width); }, embedded)};
  for (int b = 0; b < shape.blocks; ++b)
    layers.push_back(engine::module_layer(
        fmt::format("encoder{}", b), linear, [](nn::Linear& mix, const Tensors& in) -> Tensors {
          return {in[0] + mix->forward(seen(in[0], in[0], in[2])).tanh(), in[1], in[2]};
        }));
  for (int b = 0; b < shape.blocks; ++b)
    layers.push_back(engine::module_layer(
        fmt::format("decoder{}", b), linear, [](nn::Linear& mix, const Tensors& in) -> Tensors {
          return {in[0], in[1] + mix->forward(seen(in[1], in[0], in[2])).tanh(), in[2]};
        }));
  layers.push_back(engine::module_layer(
      "head", [shape] { return nn::Linear(shape.width, shape.words); },
      [](nn::Linear& head, const Tensors& in) -> Tensors {
        return {head->forward(in[1]), in[0]};
      }));
  return layers;
}

/// Returns the loss of the words plus a penalty on the encoder's output.
at::Tensor two_losses(const Tensors& outputs, const Tensors& targets) {
  return at::cross_entropy_loss(outputs[0].flatten(0, 1), targets[0].flatten()) +
         0.1 * outputs[1].square().mean();
}

std::unique_ptr<exec::Dataset> sentences(const TranslatorShape& shape, const std::filesystem::path&,
                                         const exec::BatchShape& batch) {
  return exec::dataset_of([shape, size = batch.microbatch_size](int step, int microbatch) {
    const int source = 5 + (shape.ragged ? microbatch : 0);
    const int target = 4 + (shape.ragged ? (step + microbatch) % 3 : 0);
    const auto words = [&](int length, int from) {
      return ((at::arange(size * length) * 7 + from + step + 3 * microbatch).remainder(shape.words))
          .view({size, length});
    };
    const at::Tensor mask =
        at::arange(source).unsqueeze(0) < at::arange(1, size + 1).unsqueeze(1) + 1;
    return exec::Batch{{words(source, 0), words(target, 1), mask}, {words(target, 2)}};
  });
}

int words_of_sample(const TranslatorShape&) { return 9; }

}  // namespace custom_model_test

PIPEWRIGHT_OWN_MODEL(custom_model_test::TranslatorShape,
                     {.meaning = "Translates made-up sentences.",
                      .layers = custom_model_test::translator_layers,
                      .data = custom_model_test::sentences,
                      .loss = custom_model_test::two_losses,
                      .unit = "words",
                      .units = custom_model_test::words_of_sample,
                      .dynamic_shapes = true});

namespace custom_model_test {

plan::Scenario scenario_of(const std::string& model) {
  return plan::scenario_from_json(plan::JsonDocument::parse(
      R"({"format": "pipewright/scenario/1", "name": "own", "model": {"kind": "translator")" +
          model + R"(},
          "data": {"kind": "translator", "path": "anything"},
          "cluster": {"name": "here", "nodes": 1, "devices_per_node": 2, "device": {"name": "core"},
                      "within_node": {"latency_s": 1e-5, "bandwidth_per_s": 1e10}},
          "pipeline": {"ranks": 2, "microbatches": 4, "schedule": "1f1b"},
          "training": {"steps": 4, "microbatch_size": 2},
          "profile": {"warm_up": 0, "least_repeats": 2, "most_repeats": 2}})",
      "own.json"));
}

TEST_CASE("A custom model is profiled, cut, predicted, trained and compared", "[loop]") {
  for (const char* model : {"", R"(, "ragged": true)"})
    for (const char* change :
         {"pipeline.schedule=1f1b", "pipeline.schedule=zbv", "training.recompute=full"}) {
      CAPTURE(model, change);
      const test::TempFolder folder;
      loop::Membership alone;
      const auto done = loop::run_scenario(changed(scenario_of(model), change), alone,
                                           {.folder = folder.path() / "run", .verify = true});
      CHECK(done->verification->bit_identical());
      CHECK(done->outcome.training.units_per_s > 0);
      CHECK(done->report.contains("error_percent"));
      CHECK(done->report.contains("words_per_s"));
      CHECK(exists(folder.path() / "run" / "report.json"));
    }
}

TEST_CASE("A custom model is read, written and rejected as others are", "[loop]") {
  const plan::Scenario scenario = scenario_of(R"(, "blocks": 3)");
  CHECK(scenario.model.as<TranslatorShape>().blocks == 3);
  CHECK(plan::scenario_from_json(plan::JsonDocument::parse(to_json(scenario).dump(), "s.json"))
            .model == scenario.model);
  CHECK(changed(scenario, "model.width=20").model.as<TranslatorShape>().width == 20);
  CHECK(test::error_of([&] { changed(scenario, "model.width=1"); }).find("1 is not possible") !=
        std::string::npos);
  CHECK(test::error_of([] { scenario_of(R"(, "block": 3)"); }).find("did you mean \"blocks\"?") !=
        std::string::npos);
  CHECK(test::error_of([&] {
          changed(scenario, "pipeline.tensor=2");
        }).find("no layer of the model translator can be divided into 2 parts") !=
        std::string::npos);
  const plan::Model model = plan::model_of(scenario);
  REQUIRE(model.layers.size() == 8);
  CHECK(model.layers[0].parameters == 19 * 12);
  CHECK(model.layers[1].parameters == 12 * 13);
}

TEST_CASE("An existing kind cannot be declared again", "[loop]") {
  plan::ModelDescriptor again = plan::descriptor_of<TranslatorShape>();
  CHECK(test::error_of([&] { plan::add_model_kind(again); }) ==
        "a model of the kind \"translator\" is known already: another name is needed");
}

}  // namespace custom_model_test
