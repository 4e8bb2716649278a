#include "pipewright/engine/models/imported.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "models/graph_call.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/exec/data/tensor_samples.hpp"
#include "pipewright/exec/data/tokens.hpp"
#include "pipewright/exec/hash.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

constexpr int widest_two_bytes = 65'536;  // the largest vocabulary whose tokens have two bytes in a
                                          // file

using plan::ExportedLayer;
using plan::ExportedTensor;
using plan::ExportedWeight;
using plan::ImportedModel;
using ModelPointer = std::shared_ptr<const ImportedModel>;

const ExportedWeight& weight_at(const ImportedModel& model, int place) {
  return model.program.weights[static_cast<std::size_t>(place)];
}
const ExportedTensor& tensor_of_weight(const ImportedModel& model, const ExportedWeight& weight) {
  return model.program.values[static_cast<std::size_t>(weight.value)];
}

std::vector<int> weight_values(const ImportedModel& model, const ExportedLayer& layer) {
  std::vector<int> values;
  for (const int w : layer.weights)
    values.push_back(weight_at(model, w).value);
  return values;
}

/// Returns types and sizes without the batch dimension.
std::vector<exec::TensorShape> sizes_of(const ImportedModel& model,
                                        const std::vector<int>& values) {
  std::vector<exec::TensorShape> shapes;
  for (const int value : values) {
    const ExportedTensor& tensor = model.program.values[static_cast<std::size_t>(value)];
    shapes.push_back({tensor.name,
                      exec::type_named(tensor.dtype),
                      {tensor.sizes.begin() + 1, tensor.sizes.end()}});
  }
  return shapes;
}

at::ScalarType type_of_weight(const ImportedModel& model, const ExportedWeight& weight) {
  return exec::type_named(tensor_of_weight(model, weight).dtype);
}

/// Returns a weight as a view of the archive, which stays mapped as long as the tensor lives.
at::Tensor stored(const ImportedModel& model, const ExportedWeight& weight,
                  const at::Tensor& archive) {
  const ExportedTensor& tensor = tensor_of_weight(model, weight);
  const at::ScalarType type = type_of_weight(model, weight);
  at::Tensor bytes = archive.slice(0, weight.begin, weight.end);
  const auto size = static_cast<std::int64_t>(c10::elementSize(type));
  bytes = bytes.slice(0, 0, bytes.numel() / size * size);
  if (weight.begin % size != 0)
    bytes = bytes.clone();
  return bytes.view(type).as_strided(tensor.sizes, weight.strides,
                                     bytes.storage_offset() / size + weight.offset);
}

/// Returns "attn.proj.weight" for layer "h.3", whose module calls the weight
/// "h.3.attn.proj.weight", even if another module shares it under its own name.
std::string name_in_layer(const ImportedModel& model, const ExportedLayer& layer,
                          const ExportedWeight& weight) {
  const std::string own = layer.name + ".";
  for (const ExportedWeight& each : model.program.weights)
    if (each.begin == weight.begin && each.name.starts_with(own) &&
        (each.is_parameter || each.name == weight.name))
      return each.name.substr(own.size());
  return weight.name;
}

/// A module that only holds registered modules and tensors: one for each part of a dotted name.
class Folder final : public torch::nn::Module {};

/// A layer of graph operators, with the parameters and buffers that they use.
class GraphLayer final : public exec::Layer {
 public:
  GraphLayer(ModelPointer model, std::shared_ptr<const GraphCall> call, int index, int seed)
      : model_(std::move(model)), call_(std::move(call)), seed_(seed), index_(index) {
    const ExportedLayer& layer = here();
    std::map<std::int64_t, at::Tensor> by_memory;  // one parameter may have several names
    for (const int w : layer.weights) {
      const ExportedWeight& weight = weight_at(*model_, w);
      at::Tensor& one = by_memory[weight.begin];
      if (!one.defined() || !weight.is_parameter) {
        one = at::empty(tensor_of_weight(*model_, weight).sizes, type_of_weight(*model_, weight));
        put(layer, weight, one);
      }
      weights_.push_back(one);
    }
  }

  exec::Tensors forward_all(const exec::Tensors& inputs,
                            const exec::CallContext& context) override {
    require_sizes(inputs);
    GraphRun run{.training = is_training(), .device = inputs.front().device()};
    if (call_->draws() && run.training)
      run.generator = at::detail::createCPUGenerator(
          exec::hash_of({seed_, index_, context.step, context.microbatch}));
    return call_->run(inputs, weights_, run);
  }

  void fill() {
    if (weights_.empty())
      return;
    const at::Tensor archive = exec::mapped(model_->archive);
    const auto& weights = here().weights;
    for (std::size_t w = 0; w < weights.size(); ++w)
      weights_[w].copy_(stored(*model_, weight_at(*model_, weights[w]), archive));
  }

 private:
  const ExportedLayer& here() const {
    return model_->layers.layers[static_cast<std::size_t>(index_)];
  }

  /// Registers the tensor itself, so that it follows the module when that is moved or cast.
  void put(const ExportedLayer& layer, const ExportedWeight& weight, const at::Tensor& value) {
    torch::nn::Module* folder = this;
    std::string name = name_in_layer(*model_, layer, weight);
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.')) {
      const std::string part = name.substr(0, dot);
      const auto children = folder->named_children();
      folder = children.contains(part)
                   ? children[part].get()
                   : folder->register_module(part, std::make_shared<Folder>()).get();
      name.erase(0, dot + 1);
    }
    if (weight.is_parameter)
      folder->register_parameter(name, value, weight.is_trained);
    else
      folder->register_buffer(name, value);
  }

  void require_sizes(const exec::Tensors& inputs) const {
    const ExportedLayer& layer = here();
    if (inputs.size() != layer.inputs.size())
      throw plan::InputError(fmt::format("layer {}: it takes {} tensors, but {} were given",
                                         layer.name, layer.inputs.size(), inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ExportedTensor& tensor =
          model_->program.values[static_cast<std::size_t>(layer.inputs[i])];
      if (inputs[i].sizes() != at::IntArrayRef(tensor.sizes))
        throw plan::InputError(fmt::format(
            "layer {}: {} has the sizes [{}], but was exported with [{}]; microbatches have {} "
            "samples (training.microbatch_size)",
            layer.name, tensor.name, fmt::join(inputs[i].sizes(), ", "),
            fmt::join(tensor.sizes, ", "), model_->batch));
    }
  }

  ModelPointer model_;
  std::shared_ptr<const GraphCall> call_;  // shared by all instances of this layer
  int seed_, index_;
  exec::Tensors weights_;
};

/// Returns the loss's constants, cloned from the archive.
exec::Tensors constants_of_loss(const ImportedModel& model) {
  exec::Tensors constants;
  if (model.layers.loss.weights.empty())
    return constants;
  const at::Tensor archive = exec::mapped(model.archive);
  for (const int w : model.layers.loss.weights)
    constants.push_back(stored(model, weight_at(model, w), archive).clone());
  return constants;
}

exec::LayerSpec spec_of_layer(const ModelPointer& model, int index, int seed) {
  const ExportedLayer& layer = model->layers.layers[static_cast<std::size_t>(index)];
  const auto call = std::make_shared<const GraphCall>(model->program, layer.nodes, layer.inputs,
                                                      weight_values(*model, layer), layer.outputs);
  exec::LayerSpec spec{.name = layer.name, .build = [model, call, index, seed] {
                         return std::make_shared<GraphLayer>(model, call, index, seed);
                       }};
  spec.fill = [](exec::Layer& built, const exec::TensorParallelPlace&) {
    dynamic_cast<GraphLayer&>(built).fill();
  };
  spec.tied_key = layer.tied_key;
  for (const int w : layer.tied)
    spec.tied_weights.push_back(name_in_layer(*model, layer, weight_at(*model, w)));
  spec.varies = call->draws();
  spec.random = call->draws_from_global();
  return spec;
}

std::unique_ptr<exec::Dataset> open_any_samples(const ImportedModel& model,
                                                const std::filesystem::path& path,
                                                const exec::BatchShape& batch) {
  if (path.extension() == ".safetensors")
    return exec::open_tensor_samples(path, sizes_of(model, model.program.inputs),
                                     sizes_of(model, model.program.targets), batch);
  const plan::Sample sample = plan::sample_of_import(model);
  const bool are_tokens = model.program.inputs.size() == 1 && model.program.targets.size() < 2 &&
                          sample.input.is_index && sample.input.shape.size() == 1 &&
                          sample.target == sample.input;
  if (!are_tokens)
    throw plan::InputError(fmt::format(
        "data.path={}: a .safetensors file is needed for this model, which does not learn from "
        "tokens alone",
        path.string()));
  return exec::open_tokens(path, sample.input.shape.front(), widest_two_bytes, batch);
}

std::unique_ptr<exec::Dataset> open_samples(const plan::ImportedShape& shape,
                                            const std::filesystem::path& path,
                                            const exec::BatchShape& batch) {
  const ImportedModel& model = *shape.model;
  auto samples = open_any_samples(model, path, batch);
  if (batch.microbatch_size != model.batch)
    throw plan::InputError(
        fmt::format("training.microbatch_size={}: {} was exported with {} samples, and each "
                    "microbatch must have as many",
                    batch.microbatch_size, model.archive.string(), model.batch));
  return samples;
}

}  // namespace

std::vector<exec::LayerSpec> imported_layers(const ModelPointer& model, int seed) {
  std::vector<exec::LayerSpec> specs;
  for (const plan::Layer& planned : model->planned.layers) {
    specs.push_back(spec_of_layer(model, static_cast<int>(specs.size()), seed));
    specs.back().kind = planned.kind;
  }
  return specs;
}

exec::Loss imported_loss(const ModelPointer& model) {
  const ExportedLayer& loss = model->layers.loss;
  if (loss.nodes.empty())
    return exec::cross_entropy;
  std::vector<int> given = loss.inputs;
  given.insert(given.end(), model->program.targets.begin(), model->program.targets.end());
  return [model, constants = constants_of_loss(*model),
          call = std::make_shared<const GraphCall>(model->program, loss.nodes, given,
                                                   weight_values(*model, loss), loss.outputs)](
             const exec::Tensors& outputs, const exec::Tensors& targets) {
    exec::Tensors all = outputs;
    all.insert(all.end(), targets.begin(), targets.end());
    GraphRun run{.device = outputs.front().device()};
    exec::Tensors weights;
    for (const at::Tensor& constant : constants)
      weights.push_back(constant.to(run.device));
    return call->run(all, weights, run).front();
  };
}

void write_imported(const ImportedModel& model, const ReadLayer& layers,
                    const std::filesystem::path& out) {
  std::vector<FileTensor> tensors;
  std::set<std::pair<std::int64_t, bool>> written;  // a parameter is written once, even if used
                                                    // several times
  for (std::size_t index = 0; index < model.layers.layers.size(); ++index) {
    const ExportedLayer& layer = model.layers.layers[index];
    for (const int w : layer.weights) {
      const ExportedWeight& weight = weight_at(model, w);
      if (!written.emplace(weight.begin, weight.is_parameter).second)
        continue;
      const auto& sizes = tensor_of_weight(model, weight).sizes;
      tensors.push_back(
          {{weight.name, type_of_weight(model, weight), sizes},
           static_cast<int>(index),
           [name = name_in_layer(model, layer, weight), index](const LayerWeights& weights) {
             return weight_named(weights, name, static_cast<int>(index));
           }});
    }
  }
  std::filesystem::create_directories(out);
  write_weight_files(std::move(tensors), layers, out);
}

template <>
const ModelBuilder& builder_of<plan::ImportedShape>() {
  static const ModelBuilder imported = declare_builder<plan::ImportedShape>(
      {.layers =
           [](const plan::ImportedShape& shape, const LayerChoice& choice) {
             return imported_layers(shape.model, choice.seed);
           },
       .open = open_samples,
       .loss = [](const plan::ImportedShape& shape) { return imported_loss(shape.model); }});
  return imported;
}

}  // namespace pipewright::engine
