#pragma once

// An archive of the small module of tests/data/exported, which a test may change.

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/imported_model.hpp"
#include "support/zip_archive.hpp"

namespace pipewright::test {

inline plan::Json json_of_data(const std::string& name) {
  std::ifstream stream(std::string(PIPEWRIGHT_TEST_DATA_DIR "/exported/") + name);
  return plan::Json::parse(stream);
}

struct ExportedArchive {
  plan::Json model = json_of_data("model.json");
  plan::Json weights = json_of_data("model_weights_config.json");
  int targets = 1;

  /// Sets all numbers of weight i to (i + 1) / 4, as floats.
  std::string bytes() const {
    std::vector<std::pair<std::string, std::string>> entries{
        {"m/models/model.json", model.dump()},
        {"m/data/weights/model_weights_config.json", weights.dump()},
        {"m/extra/pipewright.json", plan::Json{{"targets", targets}}.dump()}};
    for (int weight = 0; weight < 20; ++weight) {
      std::vector<float> numbers(32, static_cast<float>(weight + 1) / 4);
      entries.emplace_back("m/data/weights/weight_" + std::to_string(weight),
                           std::string(reinterpret_cast<const char*>(numbers.data()),
                                       numbers.size() * sizeof(float)));
    }
    return zip_of(entries);
  }
  plan::ExportedProgram program() const { return plan::exported_from_bytes(bytes(), "model.pt2"); }

  /// Gives the head a weight of its own.
  ExportedArchive& untied() {
    node("linear_2")["inputs"][1]["arg"]["as_tensor"]["name"] = "p_model_embed_weight";
    weights["config"]["model.embed.weight"]["path_name"] = "weight_19";
    return *this;
  }

  /// Returns the model after writing it to a file of this folder, with one layer per module.
  std::shared_ptr<const plan::ImportedModel> model_in(const std::filesystem::path& folder) const {
    plan::write_file(folder / "model.pt2", bytes());
    plan::ExportedProgram read = plan::read_exported(folder / "model.pt2");
    plan::ExportedLayers layers = plan::layers_of(read);
    return std::make_shared<const plan::ImportedModel>(
        plan::imported_model(folder / "model.pt2", std::move(read), std::move(layers)));
  }

  /// Writes the folder as `pipewright import` would.
  plan::ImportedShape shape_in(const std::filesystem::path& folder) const {
    const auto imported = model_in(folder);
    plan::write_file(folder / "layers.json", layers_json(*imported).dump());
    return {.path = folder.string(), .model = imported};
  }

  /// Returns the node of this name in the graph.
  plan::Json& node(const std::string& name) {
    for (plan::Json& each : model["graph_module"]["graph"]["nodes"])
      if (each["name"] == name)
        return each;
    throw std::logic_error("no node " + name);
  }
};

}  // namespace pipewright::test
