#pragma once

// The declaration of a model, independent of the type of its shape. Readers, writers, schema, help,
// predictions and tests iterate over the list of declarations; exec has the builders of the layers
// (engine/models/model_builder.hpp).

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/field_schema.hpp"
#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// A kind of training data.
struct DataKind {
  std::string_view name;       // name in a scenario's `data.kind`
  std::string_view meaning;    // content of its path
  bool is_folder = false;      // the path is a folder, not a file
  bool is_row = false;         // a sequence of numbers, from which windows are taken
  bool has_documents = false;  // document ends can be known
};
inline constexpr DataKind text_data{
    .name = "text", .meaning = "the bytes of one file", .is_row = true};
inline constexpr DataKind cifar10_data{
    .name = "cifar10", .meaning = "data_batch_*.bin", .is_folder = true};
inline constexpr DataKind tokens_data{
    .name = "tokens",
    .meaning =
        "a file of token numbers, two bytes each, or four for vocabularies above 65536; or "
        "the .bin of a pair that Megatron-LM wrote, with its .idx beside it",
    .is_row = true,
    .has_documents = true};

inline constexpr DataKind samples_data{
    .name = "samples",
    .meaning =
        "a safetensors file with \"inputs\" and \"targets\" of all samples, or a file of "
        "tokens for a model of tokens"};

/// A declared model: its names, its data, and functions of its shape.
struct ModelDescriptor {
  std::string kind;     // name in a scenario's `model.kind`
  std::string meaning;  // one sentence
  DataKind data;
  std::string unit;               // the unit of throughput: "tokens", "images"
  std::vector<std::string> keys;  // names of its fields
  std::function<ModelShape()> plain;
  std::function<bool(const ModelShape&, const ModelShape&)> equal;
  std::function<Model(const ModelShape&)> layers;
  std::function<Sample(const ModelShape&)> sample;
  std::function<LayerEstimate(const ModelShape&, const Layer&)> estimate;
  /// Reads the shape. Returns nothing, with an error recorded, if the object does not describe a
  /// valid one.
  std::function<std::optional<ModelShape>(JsonObject&)> read;
  /// Returns why the layers cannot be partitioned into `parts` parts, and the nearest numbers that
  /// work.
  std::function<std::vector<std::string>(const ModelShape&, int parts)> faults_of_cut;
  /// Returns the fields whose values cannot be trained.
  std::function<std::vector<std::string>(const ModelShape&)> only_predicted;
  std::function<Json(const ModelShape&)> fields;
  std::function<Json()> schema;
};

/// Returns all models, in the order of the schema.
const std::vector<std::reference_wrapper<const ModelDescriptor>>& model_kinds();

/// Registers another model after the existing ones, for all later reading and writing. Call it
/// before anything else. `model` must live until the end of the program. Throws InputError if the
/// name is already registered.
void add_model_kind(const ModelDescriptor& model);

/// Returns the kinds of data that models use, each once.
std::vector<DataKind> data_kinds();

/// Reads the model that an object describes: its `kind` and the fields of that model. Returns
/// nothing, with an error recorded, if the description is not valid.
std::optional<ModelShape> read_model_shape(JsonObject& object);

}  // namespace pipewright::plan
