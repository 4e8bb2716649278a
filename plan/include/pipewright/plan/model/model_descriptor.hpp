#pragma once

// All that a model says of itself, whatever the type of its shape. Reader, writer, schema, help,
// predictions and tests go over the list of these; exec has what builds the layers
// (engine/models/model_builder.hpp).

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/field_schema.hpp"
#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// What a model learns from.
struct DataKind {
  std::string_view name;       // as a scenario's `data.kind` names it
  std::string_view meaning;    // what lies at its path
  bool is_folder = false;      // the path is a folder, not a file
  bool is_row = false;         // of numbers, from which windows are taken
  bool has_documents = false;  // it can say where they end
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

struct ModelDescriptor {
  std::string kind;     // as a scenario's `model.kind` names it
  std::string meaning;  // a sentence
  DataKind data;
  std::string unit;               // what speed is counted in: "tokens", "images"
  std::vector<std::string> keys;  // what its fields are called
  std::function<ModelShape()> plain;
  std::function<bool(const ModelShape&, const ModelShape&)> equal;
  std::function<Model(const ModelShape&)> layers;
  std::function<Sample(const ModelShape&)> sample;
  std::function<LayerEstimate(const ModelShape&, const Layer&)> estimate;
  /// Nothing when the object does not say soundly what the shape is; then it has an error.
  std::function<std::optional<ModelShape>(JsonObject&)> read;
  /// Why shards cannot have so many parts of its layers, and how many would do.
  std::function<std::vector<std::string>(const ModelShape&, int parts)> faults_of_cut;
  /// The fields that are set to something that nothing trains.
  std::function<std::vector<std::string>(const ModelShape&)> only_predicted;
  std::function<Json(const ModelShape&)> fields;
  std::function<Json()> schema;
};

/// In the order of the schema.
const std::vector<std::reference_wrapper<const ModelDescriptor>>& model_kinds();

/// One more kind, behind those that are there, for all that is read and written from then on:
/// before anything else is done. `model` must outlive all of it. Throws InputError when there is
/// one of this name.
void add_model_kind(const ModelDescriptor& model);

/// The data that models learn from, each once.
std::vector<DataKind> data_kinds();

/// The model that an object describes: its `kind` and that model's fields. Nothing when it does not
/// say that soundly; then it has an error.
std::optional<ModelShape> read_model_shape(JsonObject& object);

}  // namespace pipewright::plan
