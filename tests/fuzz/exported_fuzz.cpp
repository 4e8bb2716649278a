// torch.export.save archives: the text is tried as raw bytes and as the graph of an otherwise valid
// archive. An accepted graph can be divided into layers in which every used value has been made.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "pipewright/plan/exported/exported_layers.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/imported_model.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/zip_archive.hpp"

namespace exported_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;

/// Returns a weights table with a position for each parameter or buffer named in the graph, with
/// the size that the graph gives.
std::string weights_for(const Json& model) {
  Json config = Json::object();
  const auto at = [](const Json& json, const std::string& pointer) {
    const Json::json_pointer place(pointer);
    return json.is_object() && json.contains(place) ? json.at(place) : Json();
  };
  const Json metas = at(model, "/graph_module/graph/tensor_values");
  for (const Json& spec : at(model, "/graph_module/signature/input_specs"))
    for (const std::string key : {"parameter", "buffer"}) {
      const Json name = at(spec, "/" + key + "/" + key + "_name");
      const Json value = at(spec, "/" + key + "/arg/name");
      if (name.is_string() && value.is_string() && metas.is_object() &&
          metas.contains(value.get<std::string>()))
        config[name.get<std::string>()] = {{"path_name", "weight_0"},
                                           {"tensor_meta", metas.at(value.get<std::string>())}};
    }
  return Json{{"config", config}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void try_layers(const ExportedProgram& program, const LayerBoundaries& borders) {
  const auto all = accepted([&] { return layers_of(program, borders); });
  if (!all)
    return;
  std::set<int> nodes;
  for (std::size_t l = 0; l < all->layers.size(); ++l) {
    demand(!all->layers[l].nodes.empty(), "each layer has operators");
    nodes.insert(all->layers[l].nodes.begin(), all->layers[l].nodes.end());
    if (l > 0)
      demand(all->layers[l].inputs == all->layers[l - 1].outputs,
             "each layer's inputs are the previous layer's outputs");
  }
  demand(nodes.size() + all->loss.nodes.size() == program.nodes.size(),
         "each operator is in one layer or the loss");
  const auto model = accepted([&] { return imported_model("model.pt2", program, *all); });
  if (model)
    demand(model->planned.layers.size() == all->layers.size(), "layers are planned");
}

void try_bytes(const std::string& bytes) {
  const auto program = accepted([&] { return exported_from_bytes(bytes, "fuzz"); });
  if (!program)
    return;
  try_layers(*program, {});
  try_layers(*program, {.by = LayersBy::Marks});
  try_layers(*program, {.by = LayersBy::Bytes, .count = 3});
}

void try_text(std::string_view text) {
  try_bytes(std::string(text));
  const Json model = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (model.is_discarded())
    return;
  try_bytes(
      pipewright::test::zip_of({{"m/models/model.json", std::string(text)},
                                {"m/data/weights/model_weights_config.json", weights_for(model)},
                                {"m/extra/pipewright.json", R"({"targets": 1})"},
                                {"m/data/weights/weight_0", std::string(4096, '\x01')}}));
}

const pipewright::fuzz::Reader reader("exported", try_text);

}  // namespace exported_fuzz
