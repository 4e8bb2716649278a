#include "exported/node_uses.hpp"

#include <set>

namespace pipewright::plan {
namespace {

bool is_changing(const std::string& op) {
  return op.ends_with('_') && !op.ends_with("__");  // but not aten::__and__
}

}  // namespace

std::vector<int> used_values(const ExportedNode& node) {
  std::vector<int> values;
  for (const OperatorArgument& argument : node.arguments) {
    if (const auto* const tensor = std::get_if<TensorArgument>(&argument.value))
      values.push_back(tensor->value);
    if (const auto* const list = std::get_if<TensorsArgument>(&argument.value))
      for (const int value : list->values)
        if (value >= 0)
          values.push_back(value);
  }
  return values;
}

std::vector<int> made_values(const ExportedNode& node) {
  std::vector<int> values;
  for (const OperatorOutput& output : node.outputs)
    for (const int value : output.values)
      if (value >= 0)
        values.push_back(value);
  return values;
}

std::vector<int> changed_values(const ExportedNode& node) {
  std::vector<int> values;
  for (const OperatorArgument& argument : node.arguments) {
    const auto* const tensor = std::get_if<TensorArgument>(&argument.value);
    if (tensor == nullptr)
      continue;
    if (argument.name == "running_mean" || argument.name == "running_var" ||
        argument.name == "out" || (&argument == node.arguments.data() && is_changing(node.op)))
      values.push_back(tensor->value);
  }
  return values;
}

bool may_be_view(const ExportedNode& node) {
  static const std::set<std::string> views{"aten::alias",
                                           "aten::as_strided",
                                           "aten::chunk",
                                           "aten::contiguous",
                                           "aten::detach",
                                           "aten::diagonal",
                                           "aten::expand",
                                           "aten::expand_as",
                                           "aten::flatten",
                                           "aten::movedim",
                                           "aten::narrow",
                                           "aten::permute",
                                           "aten::reshape",
                                           "aten::select",
                                           "aten::slice",
                                           "aten::split",
                                           "aten::split_with_sizes",
                                           "aten::squeeze",
                                           "aten::swapaxes",
                                           "aten::t",
                                           "aten::to",
                                           "aten::transpose",
                                           "aten::numpy_T",
                                           "aten::type_as",
                                           "aten::unbind",
                                           "aten::unflatten",
                                           "aten::unfold",
                                           "aten::unsqueeze",
                                           "aten::view",
                                           "aten::view_as",
                                           "aten::dropout",
                                           "aten::_unsafe_view",
                                           "aten::tensor_split",
                                           "aten::hsplit",
                                           "aten::adjoint",
                                           "aten::mT"};
  return views.contains(node.op) || is_changing(node.op);
}

}  // namespace pipewright::plan
