#include "exported/node_flops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

namespace pipewright::plan {
namespace {

/// Returns the tensor of an argument by its position, or null if there is none.
const ExportedTensor* tensor_of(const ExportedProgram& program, const ExportedNode& node,
                                std::size_t place) {
  if (place >= node.arguments.size())
    return nullptr;
  const auto* const tensor = std::get_if<TensorArgument>(&node.arguments[place].value);
  return tensor == nullptr ? nullptr : &program.values[static_cast<std::size_t>(tensor->value)];
}

double last(const ExportedTensor& tensor, std::size_t from_end = 1) {
  return tensor.sizes.size() < from_end
             ? 1
             : static_cast<double>(tensor.sizes[tensor.sizes.size() - from_end]);
}

double made(const ExportedProgram& program, const ExportedNode& node) {
  return node.outputs.empty() || node.outputs.front().values.empty() ||
                 node.outputs.front().values.front() < 0
             ? 0
             : static_cast<double>(count_of(
                   program.values[static_cast<std::size_t>(node.outputs.front().values.front())]));
}

double product_flops(const ExportedProgram& program, const ExportedNode& node, std::size_t left) {
  const ExportedTensor* const a = tensor_of(program, node, left);
  return a == nullptr ? 0 : 2 * made(program, node) * last(*a);
}

double convolution_flops(const ExportedProgram& program, const ExportedNode& node) {
  const ExportedTensor* const input = tensor_of(program, node, 0);
  const ExportedTensor* const weight = tensor_of(program, node, 1);
  if (input == nullptr || weight == nullptr || weight->sizes.empty() || weight->sizes.front() == 0)
    return 0;
  const double taps =
      static_cast<double>(count_of(*weight)) / static_cast<double>(weight->sizes.front());
  const bool is_transposed = node.op.starts_with("aten::conv_transpose");
  return 2 * taps * (is_transposed ? static_cast<double>(count_of(*input)) : made(program, node));
}

double attention_flops(const ExportedProgram& program, const ExportedNode& node) {
  const ExportedTensor* const query = tensor_of(program, node, 0);
  const ExportedTensor* const key = tensor_of(program, node, 1);
  const ExportedTensor* const value = tensor_of(program, node, 2);
  if (query == nullptr || key == nullptr || value == nullptr)
    return 0;
  const double queries = static_cast<double>(count_of(*query)) / std::max(1.0, last(*query));
  return 2 * queries * last(*key, 2) * (last(*query) + last(*value));
}

}  // namespace

double flops_of(const ExportedProgram& program, const ExportedNode& node) {
  const std::string& op = node.op;
  if (op == "aten::linear" || op == "aten::mm" || op == "aten::bmm" || op == "aten::matmul")
    return product_flops(program, node, 0);
  if (op == "aten::addmm" || op == "aten::baddbmm")
    return product_flops(program, node, 1);
  if (op.starts_with("aten::conv"))
    return convolution_flops(program, node);
  if (op == "aten::scaled_dot_product_attention")
    return attention_flops(program, node);
  return 0;
}

std::string words_of(const OperatorArgument& argument) {
  const auto words = [](const auto& value) -> std::string {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::monostate>)
      return "none";
    else if constexpr (std::is_same_v<Value, TensorArgument>)
      return "tensor";
    else if constexpr (std::is_same_v<Value, TensorsArgument>)
      return fmt::format("{} tensors", value.values.size());
    else if constexpr (std::is_same_v<Value, DtypeArgument>)
      return value.dtype;
    else if constexpr (std::is_same_v<Value, MemoryOrder>)
      return fmt::format("order {}", static_cast<int>(value));
    else if constexpr (std::is_same_v<Value, DeviceArgument>)
      return "device";
    else if constexpr (std::is_same_v<Value, LayoutArgument>)
      return "strided";
    else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>> ||
                       std::is_same_v<Value, std::vector<double>> ||
                       std::is_same_v<Value, std::vector<bool>>)
      return fmt::format("[{}]", fmt::join(value, ","));
    else
      return fmt::format("{}", value);
  };
  return argument.name + "=" + std::visit(words, argument.value);
}

}  // namespace pipewright::plan
