#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/durable_file.hpp"
#include "folder_links.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/models/hugging_face.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;
using plan::HuggingFaceShape;

/// A tensor of a folder and its pieces, all of which one layer has.
struct WrittenTensor {
  TensorShape shape;
  int layer = 0;
  std::vector<FolderLink> pieces;
};

std::vector<WrittenTensor> tensors_to_write(const HuggingFaceShape& shape, at::ScalarType dtype) {
  std::vector<WrittenTensor> tensors;
  std::set<std::string> earlier;  // a tied head's is the embedding's
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

const at::Tensor& parameter_of(const std::map<std::string, at::Tensor>& layer,
                               const FolderLink& link, int index) {
  const auto found = layer.find(link.parameter);
  if (found == layer.end())
    throw plan::InputError(
        fmt::format("layer {}: parameter '{}' is missing", index, link.parameter));
  return found->second;
}

at::Tensor put_together(const WrittenTensor& tensor,
                        const std::map<std::string, at::Tensor>& layer) {
  at::Tensor whole = at::empty(tensor.shape.sizes, tensor.shape.dtype);
  for (const FolderLink& link : tensor.pieces) {
    const at::Tensor& all = parameter_of(layer, link, tensor.layer);
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

/// As few files as hold them, in their order.
std::vector<std::vector<WrittenTensor>> by_file(std::vector<WrittenTensor> tensors,
                                                std::int64_t most_bytes) {
  std::vector<std::vector<WrittenTensor>> files(1);
  std::int64_t filled = 0;
  for (WrittenTensor& tensor : tensors) {
    const std::int64_t size = bytes_of(tensor.shape);
    if (filled > 0 && filled + size > most_bytes) {
      files.emplace_back();
      filled = 0;
    }
    filled += size;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

void write_tensors(const std::vector<WrittenTensor>& tensors, const ReadLayer& layers,
                   const fs::path& file) {
  std::vector<TensorShape> shapes;
  for (const WrittenTensor& tensor : tensors)
    shapes.push_back(tensor.shape);
  DurableFile out(file);
  const std::string header = safetensors_header(shapes);
  out.write(header.data(), header.size());
  int read = -1;
  std::map<std::string, at::Tensor> layer;
  for (const WrittenTensor& tensor : tensors) {
    if (tensor.layer != read) {
      layer = layers(tensor.layer);
      read = tensor.layer;
    }
    const at::Tensor whole = put_together(tensor, layer);
    out.write(whole.const_data_ptr(), whole.nbytes());
  }
  out.close();
}

void write_all(const std::vector<std::vector<WrittenTensor>>& files, const ReadLayer& layers,
               const fs::path& out) {
  if (files.size() == 1)
    return write_tensors(files.front(), layers, out / "model.safetensors");
  plan::Json map = plan::Json::object();
  std::int64_t size = 0;
  for (std::size_t at = 0; at < files.size(); ++at) {
    const auto name = fmt::format("model-{:05}-of-{:05}.safetensors", at + 1, files.size());
    for (const WrittenTensor& tensor : files[at]) {
      map[tensor.shape.name] = name;
      size += bytes_of(tensor.shape);
    }
    write_tensors(files[at], layers, out / name);
  }
  const plan::Json index{{"metadata", {{"total_size", size}}}, {"weight_map", map}};
  write_durably(out / "model.safetensors.index.json", index.dump(2) + "\n");
}

void write_config(const HuggingFaceShape& shape, at::ScalarType dtype, const fs::path& out) {
  const auto document = plan::JsonDocument::read(fs::path(shape.path) / "config.json");
  plan::Json config = document.root();
  config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = word_of(dtype);
  write_durably(out / "config.json", config.dump(2) + "\n");
}

/// What comes with a model beside its weights: a tokenizer's files, and how it is asked for text.
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

ReadLayer layers_of(const Checkpoint& checkpoint) {
  return [checkpoint](int index) {
    std::map<std::string, std::vector<NamedTensor>> parts;
    for (NamedTensor& tensor : checkpoint.parameters_of(index).parameters)
      parts[tensor.name].push_back(std::move(tensor));
    std::map<std::string, at::Tensor> wholes;
    for (const auto& [name, of_one] : parts) {
      Tensors values;
      for (const NamedTensor& part : of_one)
        values.push_back(part.value);
      wholes[name] = joined(values, of_one.front().part);
    }
    return wholes;
  };
}

void write_folder(const HuggingFaceShape& shape, const ReadLayer& layers, const fs::path& out,
                  std::int64_t most_bytes) {
  const auto first = layers(0);
  const auto tokens = first.find("tokens.weight");
  if (tokens == first.end())
    throw plan::InputError("layer 0: parameter 'tokens.weight' is missing");
  const at::ScalarType dtype = tokens->second.scalar_type();
  fs::create_directories(out);
  if (fs::equivalent(out, shape.path))
    throw plan::InputError(
        fmt::format("{}: the model's own folder is not written over", out.string()));
  write_all(by_file(tensors_to_write(shape, dtype), most_bytes), layers, out);
  copy_companions(shape.path, out);
  write_config(shape, dtype, out);
}

}  // namespace pipewright::exec
