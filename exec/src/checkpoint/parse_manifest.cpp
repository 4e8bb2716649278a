#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "checkpoint/manifest.hpp"
#include "checkpoint/seal.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

using plan::at_least;
using plan::Diagnostics;
using plan::Json;
using plan::JsonObject;

std::map<std::string, std::string> read_notes(JsonObject& training) {
  std::map<std::string, std::string> notes;
  for (const std::string& pointer : training.elements("notes", /*required=*/false)) {
    JsonObject note(training.diagnostics(), pointer);
    notes[note.text("key")] = note.text("text");
  }
  return notes;
}

TrainingState read_training(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  return {.step = object.big_integer("step", at_least(0)),
          .seed = object.integer("seed", {}),
          .microbatches = object.integer("microbatches", at_least(1)),
          .microbatch_size = object.integer("microbatch_size", at_least(1)),
          .gradient_groups = object.integer("gradient_groups", at_least(1)),
          .tensor_groups = object.integer("tensor_groups", at_least(1), 1),
          .loss_scale = object.number("loss_scale", {}),
          .steps_since_overflow = object.integer("steps_since_overflow", at_least(0)),
          .optimizer = object.text("optimizer"),
          .precision = object.text("precision"),
          .device = object.text("device", ""),
          .microbatches_read = object.big_integer("microbatches_read", at_least(0), 0),
          .notes = read_notes(object)};
}

at::ScalarType read_dtype(JsonObject& object) {
  const std::string code = object.text("dtype");
  const auto dtype = dtype_of(code);
  if (!dtype)
    object.error("dtype", fmt::format("\"{}\" is an unknown type", code));
  return dtype.value_or(at::kFloat);
}

std::vector<std::int64_t> read_sizes(JsonObject& object) {
  const auto is_size = [](const Json& item) {
    return item.is_number_unsigned() && item.get<std::int64_t>() >= 0;
  };
  const Json* const list = object.find("shape");
  if (list != nullptr && list->is_array() && std::all_of(list->begin(), list->end(), is_size))
    return list->get<std::vector<std::int64_t>>();
  object.error("shape", "expected a list of sizes");
  return {};
}

std::uint32_t read_checksum(JsonObject& object) {
  const std::string digits = object.text("crc32c");
  std::uint32_t checksum = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, checksum, 16);
  if (digits.size() != 8 || result.ptr != end)
    object.error("crc32c", "expected eight hexadecimal digits");
  return checksum;
}

/// Reads a file's name, which must not lead out of the checkpoint's folder.
std::string read_file_name(JsonObject& object) {
  std::string name = object.text("file");
  if (name.find('/') != std::string::npos)
    object.error("file", "this is not a file in the checkpoint's folder");
  return name;
}

TensorPart read_part(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  TensorPart part{.dimension = object.integer("dimension", at_least(0)),
                  .blocks = object.integer("blocks", at_least(1)),
                  .length = object.big_integer("length", at_least(0)),
                  .index = object.integer("index", at_least(0)),
                  .count = object.integer("count", at_least(2)),
                  .experts = object.integer("experts", at_least(1), 1)};
  if (part.index >= part.count)
    object.error("index", fmt::format("there is no part {} of {}", part.index, part.count));
  if (part.experts > 1 && (part.count % part.experts != 0 || part.dimension == 0))
    object.error(
        "experts",
        fmt::format("{} parts along dimension {} cannot first be cut into {} along dimension 0",
                    part.count, part.dimension, part.experts));
  return part;
}

StoredTensor read_tensor(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  return {.shape = {object.text("name"), read_dtype(object), read_sizes(object)},
          .begin = object.big_integer("begin", at_least(0), 0),
          .whole = object.big_integer("whole", at_least(0), -1),
          .part = object.has("part") ? read_part(diagnostics, object.child("part")) : TensorPart()};
}

StoredFile read_file(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  StoredFile file{.name = read_file_name(object),
                  .holds = object.choice("holds", {"parameters", "optimizer"}) == "optimizer"
                               ? Holds::Optimizer
                               : Holds::Parameters,
                  .size = object.big_integer("bytes", at_least(0)),
                  .checksum = read_checksum(object),
                  .tensors = {}};
  for (const std::string& tensor : object.elements("tensors"))
    file.tensors.push_back(read_tensor(diagnostics, tensor));
  return file;
}

StoredLayer read_layer(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  StoredLayer layer{
      .index = object.integer("index", at_least(0)), .name = object.text("name"), .files = {}};
  for (const std::string& file : object.elements("files"))
    layer.files.push_back(read_file(diagnostics, file));
  return layer;
}

Manifest manifest_from(JsonObject& root) {
  root.allow("crc32c");
  Manifest manifest{.job = root.text("job"),
                    .part = root.integer("part", at_least(1), 0),
                    .failure = root.text("failure", ""),
                    .training = read_training(root.diagnostics(), root.child("training")),
                    .layers = {}};
  for (const std::string& pointer : root.elements("layers"))
    manifest.layers.push_back(read_layer(root.diagnostics(), pointer));
  return manifest;
}

}  // namespace

Manifest parse_manifest(const std::string& text, const std::filesystem::path& file) {
  check_seal(text, file);
  const auto document = plan::JsonDocument::parse(text, file.string());
  return plan::read_document<Manifest>(document, "pipewright/checkpoint/1", manifest_from);
}

Manifest read_manifest(const std::filesystem::path& file) {
  std::string text;
  read_pieces(file, [&](const char* data, std::size_t size) { text.append(data, size); });
  return parse_manifest(text, file);
}

}  // namespace pipewright::exec
