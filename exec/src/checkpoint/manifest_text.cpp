#include <fmt/format.h>

#include "checkpoint/manifest.hpp"
#include "checkpoint/seal.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

using plan::Json;

Json to_json(const TrainingState& training) {
  Json json = {{"step", training.step},
               {"seed", training.seed},
               {"microbatches", training.microbatches},
               {"microbatch_size", training.microbatch_size},
               {"gradient_groups", training.gradient_groups},
               {"tensor_groups", training.tensor_groups},
               {"loss_scale", training.loss_scale},
               {"steps_since_overflow", training.steps_since_overflow},
               {"optimizer", training.optimizer},
               {"precision", training.precision},
               {"device", training.device}};
  if (training.microbatches_read > 0)
    json["microbatches_read"] = training.microbatches_read;
  for (const auto& [key, text] : training.notes)
    json["notes"].push_back({{"key", key}, {"text", text}});
  return json;
}

Json to_json(const StoredTensor& tensor) {
  Json json = {{"name", tensor.shape.name},
               {"dtype", code_of(tensor.shape.dtype)},
               {"shape", tensor.shape.sizes}};
  if (tensor.whole >= 0) {
    json["begin"] = tensor.begin;
    json["whole"] = tensor.whole;
  }
  if (const TensorPart& part = tensor.part; part.count > 1)
    json["part"] = {{"dimension", part.dimension},
                    {"blocks", part.blocks},
                    {"length", part.length},
                    {"index", part.index},
                    {"count", part.count}};
  if (tensor.part.experts > 1)
    json["part"]["experts"] = tensor.part.experts;
  return json;
}

Json to_json(const StoredFile& file) {
  Json tensors = Json::array();
  for (const StoredTensor& tensor : file.tensors)
    tensors.push_back(to_json(tensor));
  return {{"file", file.name},
          {"holds", file.holds == Holds::Parameters ? "parameters" : "optimizer"},
          {"bytes", file.size},
          {"crc32c", fmt::format("{:08x}", file.checksum)},
          {"tensors", std::move(tensors)}};
}

Json to_json(const StoredLayer& layer) {
  Json files = Json::array();
  for (const StoredFile& file : layer.files)
    files.push_back(to_json(file));
  return {{"index", layer.index}, {"name", layer.name}, {"files", std::move(files)}};
}

/// Returns the keys that only a part's document has.
std::string part_keys(const Manifest& manifest) {
  std::string keys;
  if (manifest.part > 0)
    keys += fmt::format("\"part\":{},\n", manifest.part);
  if (!manifest.failure.empty())  // a disk's error text may not be UTF-8
    keys +=
        fmt::format("\"failure\":{},\n",
                    Json(manifest.failure).dump(-1, ' ', false, Json::error_handler_t::replace));
  return keys;
}

}  // namespace

/// Writes one line per layer.
std::string manifest_text(const Manifest& manifest) {
  std::string layers;
  for (const StoredLayer& layer : manifest.layers)
    layers += (layers.empty() ? "\n" : ",\n") + to_json(layer).dump();
  return sealed(fmt::format(
      "{{\"format\":\"pipewright/checkpoint/1\",\n\"job\":{},\n{}\"training\":{},\n"
      "\"layers\":[{}]}}",
      Json(manifest.job).dump(), part_keys(manifest), to_json(manifest.training).dump(), layers));
}

}  // namespace pipewright::exec
