#include "pipewright/exec/checkpoint/weight_folder.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/exec/checkpoint/torch_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// The files that have weights or name the files of weights, in the order of transformers
/// (5.24, modeling_utils.py).
struct WeightFile {
  const char* name;
  bool is_index;
};
constexpr WeightFile weight_files[] = {{"model.safetensors", false},
                                       {"model.safetensors.index.json", true},
                                       {"pytorch_model.bin", false},
                                       {"pytorch_model.bin.index.json", true}};

/// Returns true if a folder has an entry, even if it is a link to a missing file.
bool has_entry(const fs::path& file) {
  std::error_code none;
  return fs::exists(fs::symlink_status(file, none));
}

/// Returns true for the names that files of weights have in other formats.
bool has_other_weights(const std::string& name) {
  const std::string type = fs::path(name).extension().string();
  const auto is_one_of = [&](std::initializer_list<const char*> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return is_one_of(
             {".safetensors", ".gguf", ".ggml", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx"}) ||
         (is_one_of({".bin", ".pt"}) && has("model")) || (type == ".json" && has(".index."));
}

/// Throws InputError that names the files of a folder that seem to have weights.
void reject_other_weights(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (const std::string name = entry.path().filename().string(); has_other_weights(name))
      found.push_back(name);
  if (found.empty())
    return;
  std::sort(found.begin(), found.end());
  std::vector<std::string> supported;
  for (const WeightFile& file : weight_files)
    supported.emplace_back(file.name);
  throw plan::InputError(
      fmt::format("{}: no weights are read from {}. Supported are {}. Convert the weights, or move "
                  "other files away to initialize the weights randomly",
                  folder.string(), fmt::join(found, ", "), fmt::join(supported, ", ")));
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(const plan::JsonDocument& document) {
  const auto refuse = [&](const std::string& what) {
    throw plan::InputError(fmt::format("{}: {}", document.name(), what));
  };
  const plan::Json& root = document.root();
  if (!root.is_object() || !root.contains("weight_map") || !root.at("weight_map").is_object())
    refuse("\"weight_map\" is missing. It must be an object with the file of each tensor");
  std::map<std::string, std::string> files;
  for (const auto& item : root.at("weight_map").items()) {
    if (!item.value().is_string())
      refuse(fmt::format("tensor '{}' has the file {}, which is not a string", item.key(),
                         item.value().dump()));
    const auto name = item.value().get<std::string>();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      refuse(fmt::format("tensor '{}' has the file \"{}\", which is not a file name in this folder",
                         item.key(), name));
    files[item.key()] = name;
  }
  return files;
}

std::optional<WeightFolder> WeightFolder::open(const fs::path& folder) {
  WeightFolder weights(folder);
  for (const WeightFile& file : weight_files) {
    if (!has_entry(folder / file.name))
      continue;
    if (file.is_index)
      weights.add_indexed(file.name);
    else
      weights.add_file(file.name);
    return weights;
  }
  reject_other_weights(folder);
  return {};
}

void WeightFolder::add_file(const std::string& name) {
  const auto file = folder_ / name;
  if (file.extension() == ".bin") {
    for (auto& [tensor, values] : read_torch_file(file))
      add(name, {tensor, values.scalar_type(), values.sizes().vec()}, values);
    return;
  }
  const at::Tensor bytes = mapped(file);
  for (StoredPlace& place : safetensors_places(text_of(bytes), file.string())) {
    // The file stays mapped as long as this view lives.
    const at::Tensor values = at::from_blob(
        static_cast<char*>(bytes.data_ptr()) + place.begin, place.shape.sizes, [bytes](void*) {},
        at::dtype(place.shape.dtype));
    add(name, std::move(place.shape), values);
  }
}

void WeightFolder::add(const std::string& file, TensorShape shape, at::Tensor values) {
  const std::string tensor = shape.name;
  const auto [known, is_new] =
      tensors_.try_emplace(tensor, Tensor{file, std::move(shape), std::move(values)});
  if (!is_new)
    throw plan::InputError(fmt::format("{}: tensor '{}' is also in {}", (folder_ / file).string(),
                                       tensor, known->second.file));
}

void WeightFolder::add_indexed(const std::string& index) {
  const auto files = parse_weight_index(plan::JsonDocument::read(folder_ / index));
  std::vector<std::string> opened;
  for (const auto& [tensor, file] : files)
    if (std::find(opened.begin(), opened.end(), file) == opened.end()) {
      opened.push_back(file);
      add_file(file);
    }
  for (const auto& [tensor, file] : files)
    if (const auto found = tensors_.find(tensor);
        found == tensors_.end() || found->second.file != file)
      throw plan::InputError(fmt::format("{}: tensor '{}' should be in {}, which does not have it",
                                         (folder_ / index).string(), tensor, file));
}

std::vector<std::string> WeightFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : tensors_)
    all.push_back(name);
  return all;
}

const TensorShape* WeightFolder::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.shape;
}

fs::path WeightFolder::file_of(const std::string& name) const {
  return folder_ / tensors_.at(name).file;
}

at::Tensor WeightFolder::tensor(const std::string& name) const { return tensors_.at(name).values; }

}  // namespace pipewright::exec
