#include "pipewright/plan/exported/exported_layers.hpp"

#include <algorithm>

#include "pipewright/plan/model/imported_model.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/exported_archive.hpp"

namespace pipewright::plan {
namespace {

using test::error_of;
using test::ExportedArchive;

std::vector<std::string> names_in(const ExportedLayers& all) {
  std::vector<std::string> names;
  for (const ExportedLayer& layer : all.layers)
    names.push_back(layer.name);
  return names;
}

std::vector<std::string> values_named(const ExportedProgram& program,
                                      const std::vector<int>& values) {
  std::vector<std::string> names;
  for (const int value : values)
    names.push_back(program.values.at(static_cast<std::size_t>(value)).name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("Layers are the modules of a list, with the operators around them", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  const ExportedLayers all = layers_of(program);
  CHECK(names_in(all) == Names{"model.embed", "model.blocks.0", "model.blocks.1", "model.head"});
  // The layers in between pass on the scale, which a later layer needs.
  CHECK(values_named(program, all.layers[0].inputs) == Names{"tokens"});
  CHECK(values_named(program, all.layers[0].outputs) == Names{"sqrt", "embedding"});
  CHECK(values_named(program, all.layers[1].outputs) == Names{"sqrt", "add"});
  // Dropout has no parameters, so it joins the layer before it.
  CHECK(values_named(program, all.layers[2].outputs) == Names{"dropout"});
  CHECK(values_named(program, all.layers[3].outputs) == Names{"linear_2"});
  for (std::size_t l = 0; l + 1 < all.layers.size(); ++l)
    CHECK(all.layers[l].outputs == all.layers[l + 1].inputs);
  CHECK(crossing_bytes(program, all.layers[1]) == 4 * 4 + 3 * 4 * 4);
}

TEST_CASE("Layers are found by the classes of their modules", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  CHECK(program.classes.at("model.blocks.0.up") == "torch.nn.modules.linear.Linear");
  const Model model = imported_model("model.pt2", program, layers_of(program)).planned;
  CHECK(model.layers[1].kind.ends_with(" Block"));
  CHECK(type_weights(model, "block") == std::vector<double>{0, 1, 1, 0});
  CHECK(type_weights(model, "^imported .* (embedding|linear)$") == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("Everything that depends on a target belongs to the loss", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  const ExportedLayers all = layers_of(program);
  REQUIRE(all.loss.nodes.size() == 1);
  CHECK(program.nodes.at(static_cast<std::size_t>(all.loss.nodes[0])).op ==
        "aten::cross_entropy_loss");
  CHECK(values_named(program, all.loss.inputs) == Names{"linear_2"});
  CHECK(values_named(program, all.loss.outputs) == Names{"cross_entropy_loss"});
}

TEST_CASE("A weight under two names ties its layers", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  const ExportedLayers all = layers_of(program);
  CHECK(all.layers.front().tied_key == "model.embed.weight");
  CHECK(all.layers.back().tied_key == "model.embed.weight");
  CHECK(all.layers[1].tied_key.empty());
  REQUIRE(all.layers.back().tied.size() == 1);
  CHECK(program.weights.at(static_cast<std::size_t>(all.layers.back().tied[0])).name ==
        "model.head.weight");
  // Within one layer it is a single weight and not tied.
  const ExportedLayers one = layers_of(program, {.by = LayersBy::Bytes, .count = 1});
  CHECK(one.layers.front().tied_key.empty());
}

TEST_CASE("Boundaries are at marks, at modules or where few bytes cross", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  CHECK(names_in(layers_of(program, {.by = LayersBy::Marks})) ==
        Names{"model.embed", "model.blocks.1"});
  CHECK(names_in(layers_of(program, {.before = {"model.blocks.1"}})) ==
        Names{"model.embed", "model.blocks.1"});
  CHECK(names_in(layers_of(program, {.before = {"model.head"}, .after = {"model.embed"}})) ==
        Names{"model.embed", "model.blocks.0", "model.head"});
  for (int count = 1; count <= 6; ++count)
    CHECK(layers_of(program, {.by = LayersBy::Bytes, .count = count}).layers.size() ==
          static_cast<std::size_t>(count));
  CHECK(error_of([&] { layers_of(program, {.before = {"model.block.1"}}); }) ==
        "no module \"model.block.1\" computes anything, did you mean \"model.blocks.1\"?");
  CHECK(error_of([&] { layers_of(program, {.after = {"model.head"}}); }) ==
        "after model.head: there is nothing on the other side of this border");
  CHECK(error_of([&] {
          layers_of(program, {.by = LayersBy::Bytes, .count = 100});
        }).starts_with("--layers 100: its operators can be divided into "));
}

TEST_CASE("No boundary separates a tensor from an operator that changes it in place",
          "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  CHECK(error_of([&] { layers_of(program, {.after = {"model.blocks.0.norm"}}); }) ==
        "after model.blocks.0.norm: no border can be there: relu_ changes a tensor in place");
  for (int count = 1; count <= 6; ++count)
    for (const ExportedLayer& layer :
         layers_of(program, {.by = LayersBy::Bytes, .count = count}).layers)
      for (const int n : layer.nodes)
        if (program.nodes.at(static_cast<std::size_t>(n)).op == "aten::relu_")
          CHECK(std::ranges::count(layer.nodes, n - 1) == 1);
}

TEST_CASE("No boundary separates the users of a buffer that changes", "[plan][exported]") {
  ExportedArchive archive;
  // Makes the second norm use the running mean of the first.
  archive.node("batch_norm_1")["inputs"][3]["arg"] = archive.node("batch_norm")["inputs"][3]["arg"];
  const ExportedProgram program = archive.program();
  CHECK(error_of([&] { layers_of(program, {.by = LayersBy::Marks}); }) ==
        "pipe_split 1: no border can be there: both sides use model.blocks.0.norm.running_mean, "
        "which changes");
  CHECK(names_in(layers_of(program)) == Names{"model.embed", "model.blocks.0", "model.head"});
}

TEST_CASE("Stored layers are restored", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  const ExportedLayers all = layers_of(program);
  Names last;
  for (const ExportedLayer& layer : all.layers)
    last.push_back(program.nodes.at(static_cast<std::size_t>(layer.nodes.back())).name);
  CHECK(layers_at(program, names_in(all), last) == all);
  CHECK(error_of([&] {
          layers_at(program, {"a", "b"}, {"add", "nobody"});
        }) == "layer b: no operator of the graph is called \"nobody\"");
  CHECK(error_of([&] { layers_at(program, {"a"}, {"add"}); }) ==
        "the last layer has to end with linear_2, the last operator");
  CHECK(error_of([&] {
          layers_at(program, {"a", "b"}, {"add", "linear"});
        }) == "layer b: it ends with linear, before the layer in front of it does");
}

}  // namespace
}  // namespace pipewright::plan
