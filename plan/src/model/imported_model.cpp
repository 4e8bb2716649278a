#include "pipewright/plan/model/imported_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "exported/node_flops.hpp"
#include "exported/node_uses.hpp"
#include "model/folder_path.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::plan {

template <MaybeConst<ImportedShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("path", s.path, needed(FieldRule{.schema = R"({"type": "string", "minLength": 1})"}),
        "A folder that `pipewright import` wrote, with layers.json; relative to the folder of this "
        "file.");
}

namespace {

constexpr const char* layers_format = "pipewright/layers/1";

const ExportedTensor& tensor_at(const ExportedProgram& program, int value) {
  return program.values[static_cast<std::size_t>(value)];
}

bool is_index(const ExportedTensor& tensor) { return tensor.dtype == "int64"; }

std::vector<int> without_batch(const ExportedTensor& tensor) {
  return {tensor.sizes.begin() + (tensor.sizes.empty() ? 0 : 1), tensor.sizes.end()};
}

/// Sets the output's shape. A single tensor whose first dimension is the batch keeps its shape;
/// other outputs count as a number of floats per sample.
void set_output(const ImportedModel& model, const ExportedLayer& from, Layer& layer) {
  const auto& values = from.outputs;
  if (values.size() == 1) {
    const ExportedTensor& tensor = tensor_at(model.program, values.front());
    if (!tensor.sizes.empty() && tensor.sizes.front() == model.batch) {
      layer.output_shape = without_batch(tensor);
      layer.dtype = tensor.dtype;
      return;
    }
  }
  constexpr int bytes_of_float = 4;
  const std::int64_t bytes = crossing_bytes(model.program, from);
  layer.output_shape = {static_cast<int>(
      std::min<std::int64_t>((bytes / model.batch + bytes_of_float - 1) / bytes_of_float,
                             std::numeric_limits<int>::max()))};
}

/// Returns the FNV-1a hash. It must be the same on all machines and in all versions, because it
/// names measured costs.
std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

/// Describes a layer by its operators, sizes and connections. Layers that differ only in names are
/// of the same kind.
std::string structure_of(const ImportedModel& model, const ExportedLayer& layer) {
  std::map<int, std::size_t> numbers;
  std::string text;
  const auto name = [&](int value) {
    const auto [found, is_new] = numbers.try_emplace(value, numbers.size());
    text += fmt::format(" %{}", found->second);
    if (!is_new)
      return;
    const ExportedTensor& tensor = tensor_at(model.program, value);
    text += ":" + tensor.dtype;
    for (const std::int64_t size : tensor.sizes)
      text += fmt::format("x{}", size);
  };
  for (const int value : layer.inputs)
    name(value);
  for (const int n : layer.nodes) {
    const ExportedNode& node = model.program.nodes[static_cast<std::size_t>(n)];
    text += fmt::format("\n{}.{} {}", node.op, node.overload, node.with_gradient);
    for (const OperatorArgument& argument : node.arguments)
      text += " " + words_of(argument);
    for (const int value : used_values(node))
      name(value);
    for (const int value : made_values(node))
      name(value);
  }
  text += "\n";
  for (const int value : layer.outputs)
    name(value);
  return text;
}

/// Returns " Block" for a layer that is a module of the class "my.models.Block", and otherwise
/// nothing.
std::string class_of(const ExportedProgram& program, const ExportedLayer& layer) {
  const auto found = program.classes.find(layer.name.substr(0, layer.name.find('#')));
  if (found == program.classes.end() || found->second.empty())
    return "";
  return " " + found->second.substr(found->second.rfind('.') + 1);
}

Layer planned_layer_of(const ImportedModel& model, const ExportedLayer& from) {
  const ExportedProgram& program = model.program;
  Layer layer;
  layer.name = from.name;
  const std::string structure = structure_of(model, from);
  layer.kind = fmt::format("imported {:016x}-{}{}", hash_of_text(structure), structure.size(),
                           class_of(program, from));
  std::set<std::int64_t> counted;
  for (const int w : from.weights) {
    const ExportedWeight& weight = program.weights[static_cast<std::size_t>(w)];
    const ExportedTensor& tensor = tensor_at(program, weight.value);
    if (!weight.is_parameter || !counted.insert(weight.begin).second)
      continue;
    layer.parameters += count_of(tensor);
    if (std::ranges::count(from.tied, w) > 0)
      layer.tied_parameters += count_of(tensor);
    layer.parameter_bytes = layer.parameter_bytes + Bytes{bytes_of(tensor)};
  }
  for (const int n : from.nodes)
    layer.forward_flops += flops_of(program, program.nodes[static_cast<std::size_t>(n)]);
  layer.forward_flops /= model.batch;
  set_output(model, from, layer);
  layer.tied_key = from.tied_key;
  layer.checkpointable = true;
  return layer;
}

Model layers_of_shape(const ImportedShape& shape) { return shape.model->planned; }
Sample sample_of_shape(const ImportedShape& shape) { return sample_of_import(*shape.model); }

/// Returns the bytes that the operators of a layer allocate, without views.
LayerEstimate kept_by(const ImportedShape& shape, const Layer& layer) {
  const ImportedModel& model = *shape.model;
  LayerEstimate estimate;
  for (const ExportedLayer& from : model.layers.layers) {
    if (from.name != layer.name)
      continue;
    for (const int n : from.nodes) {
      const ExportedNode& node = model.program.nodes[static_cast<std::size_t>(n)];
      if (!may_be_view(node))
        for (const int value : made_values(node))
          estimate.kept += static_cast<double>(bytes_of(tensor_at(model.program, value)));
    }
  }
  estimate.kept /= model.batch;
  return estimate;
}

std::optional<ModelShape> read_import(JsonObject& object) {
  const auto read = [](ImportedShape shape) {
    shape.model = std::make_shared<const ImportedModel>(read_imported(shape.path));
    return shape;
  };
  const auto shape = read_shape_of_folder<ImportedShape>(object, read);
  return shape ? std::optional<ModelShape>(*shape) : std::nullopt;
}

}  // namespace

ImportedModel imported_model(const std::filesystem::path& archive, ExportedProgram program,
                             ExportedLayers layers) {
  ImportedModel model{
      .archive = archive, .program = std::move(program), .layers = std::move(layers)};
  const auto batch_of = [&](int value) {
    const ExportedTensor& tensor = tensor_at(model.program, value);
    return tensor.sizes.empty() ? std::int64_t{0} : tensor.sizes.front();
  };
  const std::int64_t batch = batch_of(model.program.inputs.front());
  for (const std::vector<int>* const all : {&model.program.inputs, &model.program.targets})
    for (const int value : *all)
      if (batch_of(value) != batch || batch < 1 || batch > 1'000'000)
        throw InputError(fmt::format(
            "{}: input {} does not begin with the batch of {} samples that {} begins with",
            archive.string(), tensor_at(model.program, value).name, batch,
            tensor_at(model.program, model.program.inputs.front()).name));
  model.batch = static_cast<int>(batch);
  model.planned.name = model.archive.stem().string();
  for (const ExportedLayer& layer : model.layers.layers)
    model.planned.layers.push_back(planned_layer_of(model, layer));
  return model;
}

std::shared_ptr<const ImportedModel> plain_import() {
  static const auto plain = [] {
    ExportedProgram program;
    program.values = {{.name = "input", .sizes = {2, 2}}, {.name = "output", .sizes = {2, 2}}};
    program.nodes = {{.name = "relu",
                      .op = "aten::relu",
                      .overload = "",
                      .arguments = {{.name = "self", .value = TensorArgument{0}}},
                      .outputs = {{.values = {1}}},
                      .module = "relu",
                      .place = ""}};
    program.inputs = {0};
    program.outputs = {1};
    ExportedLayers layers = layers_of(program);
    return std::make_shared<const ImportedModel>(
        imported_model("", std::move(program), std::move(layers)));
  }();
  return plain;
}

ImportedModel read_imported(const std::filesystem::path& folder) {
  const JsonDocument document = JsonDocument::read(folder / "layers.json");
  struct Written {
    std::string archive;
    std::vector<std::string> names, last_nodes;
  };
  const auto written = read_document<Written>(document, layers_format, [](JsonObject& root) {
    Written read{.archive = root.text("model"), .names = {}, .last_nodes = {}};
    for (const std::string& pointer : root.elements("layers")) {
      JsonObject layer(root.diagnostics(), pointer);
      read.names.push_back(layer.text("name"));
      read.last_nodes.push_back(layer.text("last"));
    }
    return read;
  });
  const std::filesystem::path archive = folder / written.archive;
  ExportedProgram program = read_exported(archive);
  try {
    ExportedLayers layers = layers_at(program, written.names, written.last_nodes);
    return imported_model(archive, std::move(program), std::move(layers));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", document.name(), error.what()));
  }
}

Json layers_json(const ImportedModel& model) {
  Json layers = Json::array();
  for (const ExportedLayer& layer : model.layers.layers)
    layers.push_back(
        {{"name", layer.name},
         {"last", model.program.nodes[static_cast<std::size_t>(layer.nodes.back())].name}});
  return {{"format", layers_format},
          {"model", model.archive.filename().string()},
          {"layers", std::move(layers)}};
}

Sample sample_of_import(const ImportedModel& model) {
  const ExportedProgram& program = model.program;
  Sample sample;
  const ExportedTensor& input = tensor_at(program, program.inputs.front());
  sample.input = {.shape = without_batch(input), .is_index = is_index(input)};
  if (!program.targets.empty()) {
    const ExportedTensor& target = tensor_at(program, program.targets.front());
    sample.target = {.shape = without_batch(target), .is_index = is_index(target)};
  } else {  // class labels
    sample.target = {.shape = without_batch(tensor_at(program, program.outputs.front())),
                     .is_index = true};
    if (!sample.target.shape.empty())
      sample.target.shape.pop_back();
  }
  return sample;
}

template <>
const ModelDescriptor& descriptor_of<ImportedShape>() {
  static const ModelDescriptor imported = [] {
    ModelDescriptor declared = declare_model<ImportedShape>(
        {.meaning = "A module of PyTorch, as torch.export saved it and `pipewright import` cut it.",
         .data = samples_data,
         .unit = "samples",
         .layers = layers_of_shape,
         .sample = sample_of_shape,
         .estimate = kept_by});
    declared.read = read_import;
    return declared;
  }();
  return imported;
}

}  // namespace pipewright::plan
