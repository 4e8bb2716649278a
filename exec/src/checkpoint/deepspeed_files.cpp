#include "pipewright/exec/checkpoint/deepspeed_files.hpp"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "pipewright/exec/checkpoint/torch_file.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// Returns the files of each layer in a folder, by layer number.
std::map<int, std::vector<fs::path>> layer_files(const fs::path& folder) {
  static const std::regex pattern(R"(layer_(\d{2,6})-(.*)model_states\.pt)");
  std::map<int, std::vector<fs::path>> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::smatch match;
    if (std::regex_match(name, match, pattern))
      files[std::stoi(match[1])].push_back(entry.path());
  }
  if (error)
    throw plan::InputError(fmt::format("{}: {}", folder.string(), error.message()));
  for (auto& [layer, of_layer] : files)
    std::sort(of_layer.begin(), of_layer.end());
  return files;
}

}  // namespace

fs::path ckpt_prefix(const fs::path& folder, const std::string& tag, const plan::Topology& topology,
                     int rank) {
  std::string name = "module";
  if (const std::string place = topology.repr_of(rank, {"data"}); !place.empty())
    name += "-" + place;
  return folder / tag / name;
}

fs::path ckpt_layer_path(const fs::path& folder, int layer, const plan::Topology& topology,
                         int rank) {
  std::string name = fmt::format("layer_{:02}", layer);
  if (const std::string place = topology.repr_of(rank); !place.empty())
    name += "-" + place;
  return folder / (name + "-model_states.pt");
}

std::vector<fs::path> ckpt_layer_path_list(const fs::path& folder, int layer) {
  auto files = layer_files(folder);
  return std::move(files[layer]);
}

NamedWeights deepspeed_layers(const fs::path& folder, const std::vector<std::string>& layers) {
  const auto files = layer_files(folder);
  if (files.empty())
    throw plan::InputError(fmt::format(
        "{}: has no layer files such as layer_00-model_00-model_states.pt", folder.string()));
  StateDict state;
  for (const auto& [layer, of_layer] : files) {
    if (layer >= static_cast<int>(layers.size()))
      throw plan::InputError(fmt::format("{}: is for layer {}, but the model has {} layers",
                                         of_layer.front().string(), layer, layers.size()));
    if (of_layer.size() > 1)
      throw plan::InputError(
          fmt::format("{}: layer {} is stored in {} files, one for each tensor-parallel rank, but "
                      "only layers of one file can be read",
                      folder.string(), layer, of_layer.size()));
    for (auto& [name, tensor] : read_torch_file(of_layer.front()))
      state.emplace(layers[static_cast<std::size_t>(layer)] + "." + name, tensor);
  }
  NamedWeights weights = weights_of(std::move(state));
  weights.where = folder.string();
  return weights;
}

NamedWeights deepspeed_module(const fs::path& file) {
  StateDict module = below(read_torch_file(file), "module");
  if (module.empty())
    throw plan::InputError(
        fmt::format("{}: has no tensor under \"module\". The weights of a PipelineModule are in "
                    "the layer files of the same folder",
                    file.string()));
  NamedWeights weights = weights_of(std::move(module));
  weights.where = file.string();
  return weights;
}

}  // namespace pipewright::exec
