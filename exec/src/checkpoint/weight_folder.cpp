#include "pipewright/exec/checkpoint/weight_folder.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

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
  if (fs::exists(folder / index_file))
    weights.add_indexed(parse_weight_index(plan::JsonDocument::read(folder / index_file)));
  else if (fs::exists(folder / single_file))
    weights.add_file(single_file);
  else
    return {};
  return weights;
}

void WeightFolder::add_file(const std::string& name) {
  const auto file = folder_ / name;
  const at::Tensor bytes = mapped(file);
  for (StoredPlace& place : safetensors_places(text_of(bytes), file.string())) {
    std::string tensor = place.shape.name;
    const auto [known, is_new] =
        tensors_.try_emplace(std::move(tensor), Tensor{name, bytes, std::move(place)});
    if (!is_new)
      throw plan::InputError(fmt::format("{}: tensor '{}' is also in {}", file.string(),
                                         known->first, known->second.file));
  }
}

void WeightFolder::add_indexed(const std::map<std::string, std::string>& files) {
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
                                         (folder_ / index_file).string(), tensor, file));
}

std::vector<std::string> WeightFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : tensors_)
    all.push_back(name);
  return all;
}

const TensorShape* WeightFolder::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.place.shape;
}

fs::path WeightFolder::file_of(const std::string& name) const {
  return folder_ / tensors_.at(name).file;
}

at::Tensor WeightFolder::tensor(const std::string& name) const {
  const Tensor& found = tensors_.at(name);
  const TensorShape& shape = found.place.shape;
  // The file stays mapped as long as this view lives.
  return at::from_blob(
      static_cast<char*>(found.bytes.data_ptr()) + found.place.begin, shape.sizes,
      [bytes = found.bytes](void*) {}, at::dtype(shape.dtype));
}

}  // namespace pipewright::exec
