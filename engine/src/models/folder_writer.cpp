#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "folder_links.hpp"
#include "pipewright/engine/models/hugging_face.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::engine {
namespace {

namespace fs = std::filesystem;
using plan::HuggingFaceShape;

/// A tensor of a folder and its pieces, all of which belong to one layer.
struct WrittenTensor {
  exec::TensorShape shape;
  int layer = 0;
  std::vector<FolderLink> pieces;
};

std::vector<WrittenTensor> tensors_to_write(const HuggingFaceShape& shape, at::ScalarType dtype) {
  std::vector<WrittenTensor> tensors;
  std::set<std::string> earlier;  // a tied head is stored as the embedding
  for (int layer = 0; layer < layer_count(shape); ++layer) {
    const std::size_t first = tensors.size();
    for (FolderLink& link : folder_links(shape, layer)) {
      if (earlier.contains(link.tensor))
        continue;
      const auto known =
          std::find_if(tensors.begin() + static_cast<std::ptrdiff_t>(first), tensors.end(),
                       [&](const WrittenTensor& one) { return one.shape.name == link.tensor; });
      if (known != tensors.end())
        known->pieces.push_back(std::move(link));
      else
        tensors.push_back({{link.tensor, dtype, link.sizes}, layer, {link}});
    }
    for (std::size_t at = first; at < tensors.size(); ++at)
      earlier.insert(tensors[at].shape.name);
  }
  return tensors;
}

at::Tensor put_together(const WrittenTensor& tensor, const LayerWeights& layer) {
  at::Tensor whole = at::empty(tensor.shape.sizes, tensor.shape.dtype);
  for (const FolderLink& link : tensor.pieces) {
    const at::Tensor& all = weight_named(layer, link.parameter, tensor.layer);
    const at::Tensor value = link.expert < 0 ? all : all[link.expert];
    const at::Tensor place = link.part_in(whole);
    if (place.sizes() != value.sizes())
      throw plan::InputError(fmt::format(
          "layer {}: parameter '{}' is [{}], the model has [{}]", tensor.layer, link.parameter,
          fmt::join(value.sizes(), ", "), fmt::join(place.sizes(), ", ")));
    place.copy_(value);
  }
  return whole;
}

void write_config(const HuggingFaceShape& shape, at::ScalarType dtype, const fs::path& out) {
  const auto document = plan::JsonDocument::read(fs::path(shape.path) / "config.json");
  plan::Json config = document.root();
  config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = exec::word_of(dtype);
  exec::write_durably(out / "config.json", config.dump(2) + "\n");
}

/// Returns true for files that accompany a model's weights: tokenizer files, generation settings
/// and the chat template.
bool comes_along(const fs::path& file) {
  const std::string name = file.filename().string();
  constexpr std::array begins{"tokenizer",      "vocab",        "merges",
                              "special_tokens", "added_tokens", "generation_config",
                              "chat_template"};
  return file.extension() == ".model" ||
         std::any_of(begins.begin(), begins.end(),
                     [&](const char* begin) { return name.starts_with(begin); });
}

void copy_companions(const fs::path& from, const fs::path& to) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from))
    if (entry.is_regular_file() && comes_along(entry.path()))
      fs::copy_file(entry.path(), to / entry.path().filename(),
                    fs::copy_options::overwrite_existing);
}

}  // namespace

void write_folder(const HuggingFaceShape& shape, const ReadLayer& layers, const fs::path& out,
                  std::int64_t most_bytes) {
  const auto first = layers(0);
  const auto tokens = first.find("tokens.weight");
  if (tokens == first.end())
    throw plan::InputError("layer 0: parameter 'tokens.weight' is missing");
  const at::ScalarType dtype = tokens->second.scalar_type();
  fs::create_directories(out);
  if (fs::equivalent(out, shape.path))
    throw plan::InputError(fmt::format(
        "{}: this is the model's own folder; choose another output folder", out.string()));
  std::vector<FileTensor> files;
  for (const WrittenTensor& tensor : tensors_to_write(shape, dtype))
    files.push_back({tensor.shape, tensor.layer,
                     [tensor](const LayerWeights& layer) { return put_together(tensor, layer); }});
  write_weight_files(std::move(files), layers, out, most_bytes);
  copy_companions(shape.path, out);
  write_config(shape, dtype, out);
}

}  // namespace pipewright::engine
