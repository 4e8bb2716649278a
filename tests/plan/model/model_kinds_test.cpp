// Properties of every model in the list, and of one that is not in it.

#include <fstream>
#include <iterator>
#include <set>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/scenario/scenario_schema.hpp"
#include "support/catch.hpp"
#include "support/custom_model.hpp"
#include "support/error_of.hpp"
#include "support/exported_archive.hpp"
#include "support/temp_folder.hpp"

namespace model_kinds_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::StackShape;

constexpr std::size_t least_models = 2;  // GPT and AlexNet; fewer mean that the list is incomplete

/// Returns an imported model, whose folder exists while the program runs.
const ImportedShape& imported_shape() {
  static const pipewright::test::TempFolder folder;
  static const ImportedShape shape = pipewright::test::ExportedArchive().shape_in(folder.path());
  return shape;
}

Scenario scenario_of(const ModelDescriptor& model) {
  Scenario scenario;
  scenario.name = model.kind;
  scenario.model = model.plain();
  if (auto* const folder = scenario.model.find<HuggingFaceShape>()) {
    folder->path = PIPEWRIGHT_TEST_DATA_DIR "/hugging_face/llama2";
    *folder = with_config(*folder);
  }
  if (scenario.model.find<ImportedShape>() != nullptr)
    scenario.model = imported_shape();
  scenario.data = {.kind = std::string(model.data.name), .path = "/data"};
  scenario.cluster.name = "c";
  scenario.cluster.device.name = "cpu";
  scenario.cluster.within_node.bandwidth_per_s = 1e12;
  return scenario;
}

TEST_CASE("Every model reads back as it was written, with its fields and its data",
          "[plan][model]") {
  std::size_t models = 0;
  std::set<std::string> kinds;
  for (const ModelDescriptor& model : model_kinds()) {
    INFO(model.kind);
    const Scenario scenario = scenario_of(model);
    const Json written = to_json(scenario);
    CHECK(scenario_from_json(JsonDocument::parse(written.dump(), "s.json")) == scenario);
    REQUIRE_FALSE(model.keys.empty());
    CHECK(written.at("model").size() == model.keys.size() + 1);  // plus its kind
    CHECK(written.at("model").at("kind") == model.kind);
    CHECK_FALSE(model_of(scenario).layers.empty());
    CHECK(sample_of(scenario.model).units >= 1);
    kinds.insert(model.kind);
    ++models;
  }
  CHECK(models >= least_models);
  CHECK(kinds.size() == models);
}

TEST_CASE("The schema describes every model with all of its fields", "[plan][model]") {
  const Json schema = Json::parse(scenario_schema());
  std::size_t models = 0;
  for (const ModelDescriptor& model : model_kinds()) {
    INFO(model.kind);
    CHECK(schema.at("properties").at("model").at("oneOf").at(models) ==
          Json{{"$ref", "#/$defs/" + model.kind}});
    const Json fields = schema.at("$defs").at(model.kind).at("properties");
    for (const std::string& key : model.keys)
      CHECK_FALSE(fields.at(key).at("description").get<std::string>().empty());
    ++models;
  }
  CHECK(models >= least_models);
}

TEST_CASE("docs/model.md has a row for every model", "[plan][model]") {
  std::ifstream file(PIPEWRIGHT_SOURCE_DIR "/docs/model.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t rows = 0;
  for (const ModelDescriptor& model : model_kinds()) {
    const std::string row = fmt::format("| `{}` | `{}` | {} | `{}` |", model.kind, model.data.name,
                                        model.unit, fmt::join(model.keys, "`, `"));
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
    ++rows;
  }
  CHECK(rows >= least_models);
}

TEST_CASE("A scenario accepts a model that only its program registers", "[plan][model]") {
  Scenario scenario = scenario_of(model_kinds().front());
  const ModelShape gpt = scenario.model;
  scenario.model = StackShape{.depth = 2, .width = 6};
  CHECK(scenario.model.kind() == "stack");
  CHECK(scenario.model == StackShape{.depth = 2, .width = 6});
  CHECK_FALSE(scenario.model == StackShape{.depth = 2, .width = 8});
  CHECK_FALSE(scenario.model == gpt);
  CHECK(model_of(scenario).layers.size() == 2);
  CHECK(to_json(scenario).at("model") == Json{{"depth", 2}, {"width", 6}, {"kind", "stack"}});

  const ModelShape copy = scenario.model;
  scenario.model.as<StackShape>().depth = 5;
  CHECK(copy.as<StackShape>().depth == 2);
  CHECK(model_of(scenario).layers.size() == 5);
  CHECK(scenario.model.find<GptShape>() == nullptr);
  CHECK(error_of([&] { scenario.model.as<GptShape>(); }) == "the model is of kind stack, not gpt");
}

/// Reads an object of a file with the stack's declaration.
std::optional<ModelShape> read_stack(const std::string& text) {
  const auto document = JsonDocument::parse(text, "m.json");
  Diagnostics diagnostics(document);
  std::optional<ModelShape> shape;
  {
    JsonObject object(diagnostics);
    shape = descriptor_of<StackShape>().read(object);
  }
  diagnostics.throw_if_any();
  return shape;
}

TEST_CASE("A custom model is read as strictly as the built-in ones", "[plan][model]") {
  CHECK(read_stack(R"({"width": 8})") == ModelShape(StackShape{.depth = 3, .width = 8}));
  CHECK(error_of([] { read_stack(R"({"widht": 8})"); }) ==
        "m.json:1:2: /widht: unknown key \"widht\", did you mean \"width\"?");
  CHECK(error_of([] { read_stack(R"({"depth": 10})"); }) ==
        "m.json:1:2: /depth: 10 is not possible: it must be at least 1 and at most 9");
  CHECK(error_of([] { read_stack(R"({"width": 7})"); }) ==
        "m.json:1:2: /width: 7 is odd: the nearest that is even is 8");
  // The 4 that replaces "wide" is not checked.
  CHECK(error_of([] { read_stack(R"({"width": "wide", "depth": 2})"); }) ==
        "m.json:1:2: /width: a whole number is needed here, not the text \"wide\"");
}

}  // namespace model_kinds_test
