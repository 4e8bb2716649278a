#include "pipewright/plan/model/hugging_face_shape.hpp"

#include <filesystem>

#include "model/folder_path.hpp"
#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/size_ranges.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"

namespace pipewright::plan {

template <MaybeConst<HuggingFaceShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit(
      "path", s.path, needed(FieldRule{.schema = R"({"type": "string", "minLength": 1})"}),
      "A folder with config.json and, unless weights are initialized randomly, model.safetensors, "
      "pytorch_model.bin or an index of several such files; relative to the folder of this file.");
  visit("sequence", s.transformer.sequence, needed(within({.least = 1, .most = most_tokens})),
        "Tokens of a sample.");
  visit("attention", s.transformer.attention, one_of(attention_kinds()),
        "True if attention writes its scores to memory.");
  visit("dropout", s.dropout, any(),
        "True if hidden states are dropped as in the config. Such a model can only be trained "
        "without dropout.");
}

namespace {

Model layers_of_folder(const HuggingFaceShape& shape) {
  return transformer_model(shape.transformer.config, shape.transformer.sequence);
}

Sample window_of_folder(const HuggingFaceShape& shape) {
  const SampleTensor window{.shape = {shape.transformer.sequence}, .is_index = true};
  return {.units = shape.transformer.sequence, .input = window, .target = window};
}

LayerEstimate nothing_more(const HuggingFaceShape&, const Layer&) { return {}; }

std::vector<std::string> faults_of_folder_cut(const HuggingFaceShape& shape, int parts) {
  return faults_of_transformer_cut(shape.transformer, parts);
}

std::vector<std::string> untrained(const HuggingFaceShape& shape) {
  std::vector<std::string> all = shape.untrained;
  for (const std::string& field : only_predicted(shape.transformer))
    if (field != "dropout")  // the dropouts of the file are listed instead
      all.push_back(field);
  return all;
}

std::optional<ModelShape> read_folder(JsonObject& object) {
  const auto shape = read_shape_of_folder<HuggingFaceShape>(object, with_config);
  if (!shape)
    return {};
  const TransformerShape& sizes = shape->transformer;
  if (sizes.config.learned_positions && sizes.sequence > sizes.config.longest)
    object.error("sequence", fmt::format("it is longer than the {} positions that are learned",
                                         sizes.config.longest));
  return *shape;
}

}  // namespace

HuggingFaceShape with_config(HuggingFaceShape shape) {
  const auto file = std::filesystem::path(shape.path) / "config.json";
  HuggingFaceModel model = hugging_face_model(JsonDocument::read(file));
  shape.type = model.type;
  shape.transformer.config = std::move(model.config);
  for (const std::string& field : model.untrained)
    shape.untrained.push_back(fmt::format("path (config.json: {})", field));
  if (shape.dropout)
    for (const std::string& share : model.dropouts)
      shape.untrained.push_back(fmt::format("dropout=true (config.json: {})", share));
  else
    shape.transformer.config.dropout = false;
  return shape;
}

const TransformerShape* transformer_of(const ModelShape& shape) {
  const auto* const folder = shape.find<HuggingFaceShape>();
  return folder != nullptr ? &folder->transformer : shape.find<TransformerShape>();
}

template <>
const ModelDescriptor& descriptor_of<HuggingFaceShape>() {
  static const ModelDescriptor folder = [] {
    ModelDescriptor declared =
        declare_model<HuggingFaceShape>({.meaning = "A Hugging Face model in a folder.",
                                         .data = tokens_data,
                                         .unit = "tokens",
                                         .layers = layers_of_folder,
                                         .sample = window_of_folder,
                                         .estimate = nothing_more,
                                         .faults_of_cut = faults_of_folder_cut,
                                         .only_predicted = untrained});
    declared.read = read_folder;
    return declared;
  }();
  return folder;
}

}  // namespace pipewright::plan
