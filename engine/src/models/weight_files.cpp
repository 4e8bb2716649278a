#include "pipewright/engine/models/weight_files.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

namespace fs = std::filesystem;

/// Distributes the tensors over as few files as possible, in order.
std::vector<std::vector<FileTensor>> by_file(std::vector<FileTensor> tensors,
                                             std::int64_t most_bytes) {
  std::vector<std::vector<FileTensor>> files(1);
  std::int64_t filled = 0;
  for (FileTensor& tensor : tensors) {
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

void write_tensors(const std::vector<FileTensor>& tensors, const ReadLayer& layers,
                   const fs::path& file) {
  std::vector<exec::TensorShape> shapes;
  for (const FileTensor& tensor : tensors)
    shapes.push_back(tensor.shape);
  exec::DurableFile out(file);
  const std::string header = exec::safetensors_header(shapes);
  out.write(header.data(), header.size());
  int read = -1;
  LayerWeights layer;
  for (const FileTensor& tensor : tensors) {
    if (tensor.layer != read) {
      layer = layers(tensor.layer);
      read = tensor.layer;
    }
    const at::Tensor whole = tensor.value(layer).contiguous();
    out.write(whole.const_data_ptr(), whole.nbytes());
  }
  out.close();
}

}  // namespace

ReadLayer layers_of(const exec::Checkpoint& checkpoint) {
  return [checkpoint](int index) {
    std::map<std::string, std::vector<exec::NamedTensor>> parts;
    for (exec::NamedTensor& tensor : checkpoint.parameters_of(index).parameters)
      parts[tensor.name].push_back(std::move(tensor));
    LayerWeights wholes;
    for (const auto& [name, of_one] : parts) {
      exec::Tensors values;
      for (const exec::NamedTensor& part : of_one)
        values.push_back(part.value);
      wholes[name] = joined(values, of_one.front().part);
    }
    return wholes;
  };
}

const at::Tensor& weight_named(const LayerWeights& weights, const std::string& name, int layer) {
  const auto found = weights.find(name);
  if (found == weights.end())
    throw plan::InputError(fmt::format("layer {}: parameter '{}' is missing", layer, name));
  return found->second;
}

void write_weight_files(std::vector<FileTensor> tensors, const ReadLayer& layers,
                        const fs::path& out, std::int64_t most_bytes) {
  const auto files = by_file(std::move(tensors), most_bytes);
  if (files.size() == 1)
    return write_tensors(files.front(), layers, out / "model.safetensors");
  plan::Json map = plan::Json::object();
  std::int64_t size = 0;
  for (std::size_t at = 0; at < files.size(); ++at) {
    const auto name = fmt::format("model-{:05}-of-{:05}.safetensors", at + 1, files.size());
    for (const FileTensor& tensor : files[at]) {
      map[tensor.shape.name] = name;
      size += bytes_of(tensor.shape);
    }
    write_tensors(files[at], layers, out / name);
  }
  const plan::Json index{{"metadata", {{"total_size", size}}}, {"weight_map", map}};
  exec::write_durably(out / "model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace pipewright::engine
