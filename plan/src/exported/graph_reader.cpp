#include "exported/graph_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "exported/argument_value.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

constexpr int deepest_graph = 20;
constexpr std::size_t most_nodes = 1'000'000;

/// Returns true for operators that only check an assumption of the export and compute nothing.
bool is_assertion(const std::string& op) {
  static const std::set<std::string> assertions{
      "aten::_assert_tensor_metadata", "aten::_assert_scalar", "aten::_assert_async",
      "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"};
  return assertions.contains(op);
}

std::string metadata_of(const Json& node, const char* key) {
  const auto metadata = node.find("metadata");
  if (metadata == node.end() || !metadata->is_object())
    return "";
  const auto found = metadata->find(key);
  return found == metadata->end() || !found->is_string() ? "" : found->get<std::string>();
}

struct ModuleCall {
  std::string path, type;
};

/// Returns the modules of "key,path,class;key,path,class", the innermost last.
std::vector<ModuleCall> modules_of(const Json& node) {
  std::vector<ModuleCall> modules;
  std::istringstream stack(metadata_of(node, "nn_module_stack"));
  for (std::string call; std::getline(stack, call, ';');) {
    const std::size_t path = call.find(',');
    const std::size_t type = path == std::string::npos ? path : call.find(',', path + 1);
    if (path != std::string::npos)
      modules.push_back({call.substr(path + 1, type - path - 1),
                         type == std::string::npos ? "" : call.substr(type + 1)});
  }
  return modules;
}

/// Returns the innermost line of a Python trace that is the user's and not a library's:
/// "model.py:12: x + y".
std::string place_of(const Json& node) {
  const std::string trace = metadata_of(node, "stack_trace");
  std::string best;
  for (std::size_t at = trace.find("File \""); at != std::string::npos;
       at = trace.find("File \"", at + 1)) {
    const std::size_t name = at + 6, name_end = trace.find('"', name);
    const std::size_t line = trace.find("line ", name), line_end = trace.find(',', line);
    if (name_end == std::string::npos || line_end == std::string::npos)
      break;
    const std::string file = trace.substr(name, name_end - name);
    const bool is_users = file.find("-packages/") == std::string::npos && !file.starts_with('<');
    if (!is_users && !best.empty())
      continue;
    const std::size_t code = trace.find('\n', line_end);
    std::string source = code == std::string::npos
                             ? ""
                             : trace.substr(code + 1, trace.find('\n', code + 1) - code - 1);
    source.erase(0, std::min(source.find_first_not_of(' '), source.size()));
    best = fmt::format("{}:{}: {}", file.substr(file.rfind('/') + 1),
                       trace.substr(line + 5, line_end - line - 5), source);
  }
  return best;
}

/// Returns the first node in a block, because blocks have no line of their own; returns the block
/// if it is empty.
const Json& first_inside(const Json& block) {
  for (const Json& input : block.at("inputs"))
    if (const Json::json_pointer nodes("/arg/as_graph/graph/nodes");
        input.is_object() && input.contains(nodes) && input.at(nodes).is_array() &&
        !input.at(nodes).empty() && input.at(nodes).front().is_object())
      return input.at(nodes).front();
  return block;
}

}  // namespace

void GraphReader::refuse(const std::string& whose, const std::string& what) const {
  throw InputError(fmt::format("{}: {}: {}", file_, whose, what));
}

void GraphReader::fault(const Json& node, const std::string& what) {
  const std::string place = place_of(node);
  faults_.push_back(fmt::format("{}: {}{}{}", file_, what, place.empty() ? "" : ", at ", place));
}

const Json& GraphReader::member(const Json& object, const std::string& key,
                                const std::string& whose) const {
  if (!object.is_object() || !object.contains(key))
    refuse(whose, fmt::format("\"{}\" is missing", key));
  return object.at(key);
}

const Json& GraphReader::object(const Json& object, const std::string& key,
                                const std::string& whose) const {
  const Json& found = member(object, key, whose);
  if (!found.is_object())
    refuse(whose, fmt::format("\"{}\" must be an object", key));
  return found;
}

const Json& GraphReader::array(const Json& object, const std::string& key,
                               const std::string& whose) const {
  const Json& found = member(object, key, whose);
  if (!found.is_array())
    refuse(whose, fmt::format("\"{}\" must be a list", key));
  return found;
}

std::string GraphReader::text(const Json& object, const std::string& key,
                              const std::string& whose) const {
  const Json& found = member(object, key, whose);
  if (!found.is_string())
    refuse(whose, fmt::format("\"{}\" must be a string", key));
  return found.get<std::string>();
}

std::int64_t GraphReader::length(const Json& said, const std::string& whose) const {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const Json& number = said.is_object() && said.contains("as_int") ? said.at("as_int") : said;
  if (!number.is_number_integer())
    refuse(whose,
           "its size depends on the inputs; export the module with fixed sizes, without "
           "dynamic_shapes");
  const auto value = number.get<std::int64_t>();
  if (value < 0 || value > most)
    refuse(whose, fmt::format("{} is not a size", value));
  return value;
}

std::vector<std::int64_t> GraphReader::lengths(const Json& object, const std::string& key,
                                               const std::string& whose) const {
  constexpr std::int64_t most_numbers = std::int64_t{1} << 40;
  std::vector<std::int64_t> lengths;
  std::int64_t product = 1;
  for (const Json& each : array(object, key, whose)) {
    lengths.push_back(length(each, whose));
    product *= std::max<std::int64_t>(lengths.back(), 1);
    if (key == "sizes" && product > most_numbers)
      refuse(whose, "it has too many numbers");
    product = std::min(product, most_numbers);
  }
  return lengths;
}

ExportedTensor GraphReader::tensor(const std::string& name, const Json& meta) const {
  ExportedTensor tensor{.name = name};
  const Json& dtype = member(meta, "dtype", name);
  tensor.dtype = dtype.is_number_integer() ? exported_dtype(dtype.get<std::int64_t>()) : "";
  if (tensor.dtype.empty())
    refuse(name, fmt::format("tensors of type {} are not supported", dtype.dump()));
  tensor.sizes = lengths(meta, "sizes", name);
  return tensor;
}

ExportedProgram GraphReader::read(const Json& model) {
  const Json& version = object(model, "schema_version", "model.json");
  const Json major = version.value("major", Json());
  if (major != 8)
    refuse("schema_version",
           fmt::format("{}: this reads what torch 2.9 to 2.11 writes, which is 8", major.dump()));
  const Json& module = object(model, "graph_module", "model.json");
  const Json& graph = object(module, "graph", "graph_module");
  Names names;
  for (const Json& spec :
       array(object(module, "signature", "graph_module"), "input_specs", "signature")) {
    if (!spec.is_object() || spec.size() != 1)
      refuse("signature", "an input is of one kind");
    read_input(spec.begin().key(), spec.begin().value(), graph, names);
  }
  read_nodes(graph, names, /*with_gradient=*/true, 0);
  for (const Json& spec :
       array(object(module, "signature", "graph_module"), "output_specs", "signature")) {
    if (!spec.is_object() || spec.size() != 1 || spec.begin().key() != "user_output")
      refuse("signature",
             fmt::format("an output of the kind {} is not known here: export with "
                         "torch.export.export alone",
                         spec.is_object() && !spec.empty() ? spec.begin().key() : "?"));
    const Json& arg = object(spec.begin().value(), "arg", "output");
    if (arg.contains("as_tensor"))
      program_.outputs.push_back(value(arg.at("as_tensor"), names, "output"));
  }
  if (!faults_.empty())
    throw InputError(listed_lines(faults_));
  if (program_.nodes.empty() || program_.outputs.empty() || program_.inputs.empty())
    refuse("graph", "nothing is computed from an input");
  return std::move(program_);
}

void GraphReader::read_input(const std::string& kind, const Json& spec, const Json& graph,
                             Names& names) {
  const auto add_weight = [&](const char* key, bool is_parameter) {
    const std::string name = text(spec, key, kind);
    const std::string in_graph = text(object(spec, "arg", kind), "name", kind);
    const int value = made_value(in_graph, graph, names);
    if (value < 0)
      refuse(name, "its size is missing");
    const Json& meta = object(graph, "tensor_values", "graph").at(in_graph);
    program_.weights.push_back(
        {.value = value,
         .name = name,
         .is_parameter = is_parameter,
         .is_trained = is_parameter && meta.value("requires_grad", Json()) == true});
  };
  if (kind == "parameter") {
    add_weight("parameter_name", true);
  } else if (kind == "buffer") {
    add_weight("buffer_name", false);
  } else if (kind == "tensor_constant") {
    add_weight("tensor_constant_name", false);
  } else if (kind == "user_input") {
    const Json& arg = object(spec, "arg", kind);
    if (!arg.contains("as_tensor"))
      return;
    const int value = made_value(text(arg.at("as_tensor"), "name", kind), graph, names);
    if (value < 0)
      refuse(kind, "its size is missing");
    program_.inputs.push_back(value);
  } else if (kind != "constant_input" && kind != "token") {
    refuse("signature", fmt::format("an input of the kind {} is not known here", kind));
  }
}

void GraphReader::read_nodes(const Json& graph, Names& names, bool with_gradient, int depth) {
  if (depth > deepest_graph)
    refuse("graph", "its graphs are nested too deeply");
  for (const Json& node : array(graph, "nodes", "graph"))
    read_node(node, graph, names, with_gradient, depth);
}

void GraphReader::read_node(const Json& node, const Json& graph, Names& names, bool with_gradient,
                            int depth) {
  const std::string target = text(node, "target", "node");
  const std::string blocks = "torch.ops.higher_order.";
  const auto flag_at = [&](std::size_t place) -> const Json* {
    const Json& inputs = array(node, "inputs", target);
    if (place >= inputs.size() || !inputs[place].is_object() || !inputs[place].contains("arg"))
      return nullptr;
    const Json& arg = inputs[place].at("arg");
    return arg.is_object() && arg.contains("as_bool") ? &arg.at("as_bool") : nullptr;
  };
  if (target == "torch.ops.pippy._pipe_split.default") {
    program_.marks.push_back(static_cast<int>(program_.nodes.size()));
  } else if (target == blocks + "wrap_with_set_grad_enabled") {
    const Json* const enabled = flag_at(0);
    read_block(node, names, with_gradient && enabled != nullptr && *enabled == true, 1, depth);
  } else if (target == blocks + "wrap_with_autocast") {
    const Json* const enabled = flag_at(2);
    if (enabled == nullptr || *enabled != false)
      fault(first_inside(node),
            "torch.autocast: export without it; training.precision=mixed trains in bfloat16");
    read_block(node, names, with_gradient, 4, depth);
  } else if (target.starts_with(blocks)) {
    fault(node, fmt::format("{}: the computation depends on data, or is a separate graph; only "
                            "plain operators can be run",
                            target.substr(blocks.size())));
    ExportedNode unknown;
    read_outputs(node, graph, unknown, names);
  } else {
    read_call(node, graph, names, with_gradient);
  }
}

/// Reads the graph of a block in place of the block. The first `leading` inputs are the block's own
/// arguments; the graph and the graph's inputs follow.
void GraphReader::read_block(const Json& node, Names& names, bool with_gradient,
                             std::size_t leading, int depth) {
  const std::string target = text(node, "target", "node");
  const Json& inputs = array(node, "inputs", target);
  if (inputs.size() <= leading)
    refuse(target, "its graph is missing");
  const Json& inner =
      object(object(object(inputs[leading], "arg", target), "as_graph", target), "graph", target);
  const Json& inner_inputs = array(inner, "inputs", target);
  if (inner_inputs.size() != inputs.size() - leading - 1)
    refuse(target, "its graph takes a different number of inputs");
  Names inner_names;
  for (std::size_t i = 0; i < inner_inputs.size(); ++i) {
    const Json& outer = object(inputs[leading + 1 + i], "arg", target);
    if (!inner_inputs[i].is_object() || !inner_inputs[i].contains("as_tensor"))
      continue;
    inner_names.insert_or_assign(text(inner_inputs[i].at("as_tensor"), "name", target),
                                 value(member(outer, "as_tensor", target), names, target));
  }
  read_nodes(inner, inner_names, with_gradient, depth + 1);
  std::vector<std::string> outer_outputs;
  for (const Json& output : array(node, "outputs", target)) {
    if (output.is_object() && output.contains("as_tensor"))
      outer_outputs.push_back(text(output.at("as_tensor"), "name", target));
    if (output.is_object() && output.contains("as_tensors"))
      for (const Json& each : array(output, "as_tensors", target))
        outer_outputs.push_back(text(each, "name", target));
  }
  const Json& inner_outputs = array(inner, "outputs", target);
  if (outer_outputs.size() > inner_outputs.size())
    refuse(target, "its graph has fewer outputs than are used");
  for (std::size_t o = 0; o < outer_outputs.size(); ++o)
    names.insert_or_assign(outer_outputs[o], value(member(inner_outputs[o], "as_tensor", target),
                                                   inner_names, target));
}

void GraphReader::read_call(const Json& node, const Json& graph, Names& names, bool with_gradient) {
  const std::string target = text(node, "target", "node");
  const std::string operators = "torch.ops.";
  ExportedNode made;
  made.with_gradient = with_gradient;
  for (const auto& [path, type] : modules_of(node)) {
    program_.classes[path] = type;
    made.module = path;
  }
  made.place = place_of(node);
  made.name = node.value("name", Json()).is_string() ? node.at("name").get<std::string>() : target;
  const std::size_t name = target.find('.', operators.size());
  const std::size_t overload = name == std::string::npos ? name : target.find('.', name + 1);
  const bool is_operator = target.starts_with(operators) && overload != std::string::npos;
  if (is_operator) {
    made.op = target.substr(operators.size(), name - operators.size()) +
              "::" + target.substr(name + 1, overload - name - 1);
    made.overload = target.substr(overload + 1);
    if (made.overload == "default")
      made.overload.clear();
  }
  if (is_assertion(made.op))
    return;
  if (!is_operator) {
    fault(node, fmt::format("{}: it computes with sizes or values of the inputs; only operators "
                            "on tensors can be run",
                            target));
  } else {
    for (const Json& input : array(node, "inputs", target)) {
      const std::string argument_name = text(input, "name", target);
      const Json& said = object(input, "arg", target);
      try {
        made.arguments.push_back({argument_name, argument_value(said, [&](const Json& named) {
                                    return value(named, names, target);
                                  })});
      } catch (const UnknownArgument& error) {
        fault(node, fmt::format("{}: {}: {}", target, argument_name, error.what()));
      }
    }
  }
  read_outputs(node, graph, made, names);
  if (program_.nodes.size() >= most_nodes)
    refuse("graph", fmt::format("it has more than {} operators", most_nodes));
  program_.nodes.push_back(std::move(made));
}

void GraphReader::read_outputs(const Json& node, const Json& graph, ExportedNode& made,
                               Names& names) {
  const std::string target = text(node, "target", "node");
  for (const Json& output : array(node, "outputs", target)) {
    OperatorOutput results;
    if (output.is_object() && output.contains("as_tensor")) {
      results.values.push_back(
          made_value(text(output.at("as_tensor"), "name", target), graph, names));
    } else if (output.is_object() && output.contains("as_tensors")) {
      results.is_list = true;
      for (const Json& each : array(output, "as_tensors", target))
        results.values.push_back(made_value(text(each, "name", target), graph, names));
    } else if (output.is_object() &&
               (output.contains("as_none") || output.contains("as_optional_tensor"))) {
      results.values.push_back(-1);
    } else {
      fault(node,
            fmt::format("{}: it takes a number out of a tensor, so the computation depends on data",
                        target));
    }
    made.outputs.push_back(std::move(results));
  }
}

/// Returns the number of a value, or -1 if nothing uses it.
int GraphReader::made_value(const std::string& name, const Json& graph, Names& names) {
  const Json& metas = object(graph, "tensor_values", "graph");
  if (!metas.contains(name))
    return -1;
  const auto number = static_cast<int>(program_.values.size());
  if (!names.emplace(name, number).second)
    refuse(name, "it is computed twice");
  program_.values.push_back(tensor(name, metas.at(name)));
  return number;
}

int GraphReader::value(const Json& said, const Names& names, const std::string& whose) const {
  const std::string name = text(said, "name", whose);
  const auto found = names.find(name);
  if (found == names.end() || found->second < 0)
    refuse(whose, fmt::format("it uses {}, which nothing before it computes", name));
  return found->second;
}

}  // namespace pipewright::plan
