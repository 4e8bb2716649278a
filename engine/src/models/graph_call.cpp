#include "models/graph_call.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// Returns T for T?.
c10::TypePtr without_option(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

bool is_list_of(const c10::TypePtr& type, c10::TypeKind element) {
  const auto list = type->cast<c10::ListType>();
  return list && without_option(list->getElementType())->kind() == element;
}

template <class To, class From>
c10::IValue list_of(const std::vector<From>& values) {
  c10::List<To> list;
  for (const From value : values)
    list.push_back(static_cast<To>(value));
  return list;
}

/// Wraps a number that is passed in place of a tensor, as Python does: its type has the lowest
/// priority in type promotion.
c10::IValue number_as_tensor(const at::Scalar& number) {
  at::Tensor tensor = at::scalar_tensor(
      number, at::device(at::kCPU).dtype(number.isBoolean()         ? at::kBool
                                         : number.isIntegral(false) ? at::kLong
                                                                    : at::kDouble));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// Converts a value without tensors to an argument of the given type.
class Constant {
 public:
  explicit Constant(const c10::TypePtr& type) : type_(without_option(type)) {}

  c10::IValue operator()(std::monostate) const { return {}; }
  c10::IValue operator()(bool value) const {
    return is_tensor() ? number_as_tensor(value) : c10::IValue(value);
  }
  c10::IValue operator()(std::int64_t value) const {
    if (is_list_of(type_, c10::TypeKind::IntType) || is_list_of(type_, c10::TypeKind::SymIntType))
      return list_of<std::int64_t>(std::vector{value});
    if (type_->kind() == c10::TypeKind::FloatType)
      return static_cast<double>(value);
    return is_tensor() ? number_as_tensor(value) : c10::IValue(value);
  }
  c10::IValue operator()(double value) const {
    return is_tensor() ? number_as_tensor(value) : c10::IValue(value);
  }
  c10::IValue operator()(const std::string& value) const { return value; }
  c10::IValue operator()(const std::vector<std::int64_t>& values) const {
    if (is_list_of(type_, c10::TypeKind::FloatType))
      return list_of<double>(values);
    return list_of<std::int64_t>(values);
  }
  c10::IValue operator()(const std::vector<double>& values) const {
    return list_of<double>(values);
  }
  c10::IValue operator()(const std::vector<bool>& values) const { return list_of<bool>(values); }
  c10::IValue operator()(const plan::DtypeArgument& value) const {
    return static_cast<std::int64_t>(exec::type_named(value.dtype));
  }
  c10::IValue operator()(plan::MemoryOrder order) const {
    constexpr std::array formats{at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
                                 at::MemoryFormat::ChannelsLast3d, at::MemoryFormat::Preserve};
    return static_cast<std::int64_t>(formats[static_cast<std::size_t>(order)]);
  }
  c10::IValue operator()(const plan::LayoutArgument&) const {
    return static_cast<std::int64_t>(at::kStrided);
  }
  c10::IValue operator()(const plan::TensorArgument&) const { return {}; }
  c10::IValue operator()(const plan::TensorsArgument&) const { return {}; }
  c10::IValue operator()(const plan::DeviceArgument&) const { return {}; }

 private:
  bool is_tensor() const { return type_->kind() == c10::TypeKind::TensorType; }

  c10::TypePtr type_;
};

/// Returns ", at model.py:12: x + y", or nothing if the export has no source location.
std::string place_words(const plan::ExportedNode& node) {
  return node.place.empty() ? "" : ", at " + node.place;
}

/// Implements at::dropout, but samples on the CPU, so that the mask is the same on every device.
at::Tensor dropped(const at::Tensor& input, double share, bool training, GraphRun& run) {
  if (share == 0 || !training || input.numel() == 0)
    return input;
  if (share == 1)
    return input * at::zeros({}, input.options());
  at::Tensor noise =
      at::empty_like(input, at::device(at::kCPU)).bernoulli_(1 - share, *run.generator);
  noise.div_(1 - share);
  return input * exec::put_on(noise, input.device());
}

}  // namespace

/// Assigns a slot to each value, and values to each operator's schema arguments.
class GraphCall::Compiler {
 public:
  explicit Compiler(GraphCall& call) : call_(call) {}

  void add_inputs(const std::vector<int>& values, std::vector<int>& slots) {
    for (const int value : values)
      slots.push_back(new_slot(value));
  }

  void add(const plan::ExportedNode& node) {
    Step step;
    step.node = &node;
    step.with_gradient = node.with_gradient;
    step.is_dropout = node.op == "aten::dropout";
    step.handle = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
    if (!step.handle) {
      fault(node, "no loaded library provides this operator");
    } else {
      for (const c10::Argument& argument : step.handle->schema().arguments())
        step.arguments.push_back(argument_of(node, argument));
      require_known(node, step.handle->schema());
      note_random(step);
    }
    for (const plan::OperatorOutput& output : node.outputs) {
      plan::OperatorOutput slots{.is_list = output.is_list, .values = {}};
      for (const int value : output.values)
        slots.values.push_back(value < 0 ? -1 : new_slot(value));
      step.outputs.push_back(std::move(slots));
    }
    call_.steps_.push_back(std::move(step));
  }

  void finish(const std::vector<int>& outputs) {
    if (!faults_.empty())
      throw plan::InputError(plan::listed_lines(faults_));
    for (const int value : outputs)
      call_.outputs_.push_back(slots_.at(value));
    call_.slots_ = static_cast<int>(slots_.size());
    std::set<int> needed(call_.outputs_.begin(), call_.outputs_.end());
    for (auto step = call_.steps_.rbegin(); step != call_.steps_.rend(); ++step)
      for (const int slot : slots_of(*step))
        if (needed.insert(slot).second)
          step->done.push_back(slot);
  }

 private:
  int new_slot(int value) {
    return slots_.emplace(value, static_cast<int>(slots_.size())).first->second;
  }

  void fault(const plan::ExportedNode& node, const std::string& what) {
    faults_.push_back(fmt::format("{}{}{}: {}{}", node.op, node.overload.empty() ? "" : ".",
                                  node.overload, what, place_words(node)));
  }

  Argument argument_of(const plan::ExportedNode& node, const c10::Argument& schema) {
    using Kind = Argument::Kind;
    Argument argument;
    argument.type = schema.type();
    const auto given =
        std::ranges::find(node.arguments, schema.name(), &plan::OperatorArgument::name);
    if (without_option(schema.type())->kind() == c10::TypeKind::GeneratorType) {
      argument.kind = Kind::Generator;
      return argument;
    }
    if (given == node.arguments.end()) {
      if (!schema.default_value())
        fault(node, fmt::format("it requires argument \"{}\"", schema.name()));
      else
        argument.constant = *schema.default_value();
      return argument;
    }
    argument.value = given->value;
    if (auto* const tensor = std::get_if<plan::TensorArgument>(&argument.value)) {
      argument.kind = Kind::OneTensor;
      tensor->value = slots_.at(tensor->value);
    } else if (auto* const list = std::get_if<plan::TensorsArgument>(&argument.value)) {
      argument.kind = Kind::TensorList;
      for (int& value : list->values)
        value = value < 0 ? -1 : slots_.at(value);
    } else if (std::holds_alternative<plan::DeviceArgument>(argument.value)) {
      argument.kind = Kind::Device;
    } else {
      argument.constant = std::visit(Constant(schema.type()), argument.value);
      if ((schema.name() == "train" || schema.name() == "training") && argument.constant.isBool())
        argument.kind = Kind::InTraining;
      else if (schema.name() == "dropout_p" && argument.constant.isDouble())
        argument.kind = Kind::ShareInTraining;
    }
    return argument;
  }

  void require_known(const plan::ExportedNode& node, const c10::FunctionSchema& schema) {
    for (const plan::OperatorArgument& given : node.arguments)
      if (!std::ranges::any_of(schema.arguments(), [&](const c10::Argument& argument) {
            return argument.name() == given.name;
          }))
        fault(node, fmt::format("it has no argument \"{}\"", given.name));
  }

  void note_random(const Step& step) {
    const auto& arguments = step.arguments;
    if (step.is_dropout)
      call_.draws_ = true;
    else if (std::ranges::any_of(arguments, [](const Argument& argument) {
               return argument.kind == Argument::Kind::Generator;
             }))
      call_.draws_ = true;
    else if (step.handle->hasTag(at::Tag::nondeterministic_seeded) && may_draw(step))
      call_.draws_from_global_ = true;
  }

  /// Returns false for an attention without dropout, which uses no random numbers.
  static bool may_draw(const Step& step) {
    for (const Argument& argument : step.arguments)
      if (argument.kind == Argument::Kind::ShareInTraining && argument.constant.toDouble() == 0)
        return false;
    return true;
  }

  static std::vector<int> slots_of(const Step& step) {
    std::vector<int> slots;
    for (const Argument& argument : step.arguments) {
      if (const auto* const tensor = std::get_if<plan::TensorArgument>(&argument.value))
        slots.push_back(tensor->value);
      if (const auto* const list = std::get_if<plan::TensorsArgument>(&argument.value))
        std::ranges::copy_if(list->values, std::back_inserter(slots),
                             [](int slot) { return slot >= 0; });
    }
    for (const plan::OperatorOutput& output : step.outputs)
      std::ranges::copy_if(output.values, std::back_inserter(slots),
                           [](int slot) { return slot >= 0; });
    return slots;
  }

  GraphCall& call_;
  std::map<int, int> slots_;  // by value
  std::vector<std::string> faults_;
};

GraphCall::GraphCall(const plan::ExportedProgram& program, const std::vector<int>& nodes,
                     const std::vector<int>& inputs, const std::vector<int>& weights,
                     const std::vector<int>& outputs) {
  Compiler compiler(*this);
  compiler.add_inputs(inputs, inputs_);
  compiler.add_inputs(weights, weights_);
  for (const int node : nodes)
    compiler.add(program.nodes[index(node)]);
  compiler.finish(outputs);
}

exec::Tensors GraphCall::run(const exec::Tensors& inputs, const exec::Tensors& weights,
                             GraphRun& run) const {
  exec::Tensors slots(index(slots_));
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    slots[index(inputs_[i])] = inputs[i];
  for (std::size_t w = 0; w < weights_.size(); ++w)
    slots[index(weights_[w])] = weights[w];
  for (const Step& step : steps_) {
    call(step, slots, run);
    for (const int slot : step.done)
      slots[index(slot)] = at::Tensor();
  }
  exec::Tensors outputs;
  for (const int slot : outputs_)
    outputs.push_back(slots[index(slot)]);
  return outputs;
}

c10::IValue GraphCall::value_of(const Argument& argument, const exec::Tensors& slots,
                                const GraphRun& run) {
  switch (argument.kind) {
    case Argument::Kind::Constant:
      return argument.constant;
    case Argument::Kind::InTraining:
      return argument.constant.toBool() && run.training;
    case Argument::Kind::ShareInTraining:
      return run.training ? argument.constant.toDouble() : 0.0;
    case Argument::Kind::Device:
      return run.device;
    case Argument::Kind::Generator:
      return run.generator ? c10::IValue(*run.generator) : c10::IValue();
    case Argument::Kind::OneTensor:
      return slots[index(std::get<plan::TensorArgument>(argument.value).value)];
    case Argument::Kind::TensorList:
      break;
  }
  const auto& values = std::get<plan::TensorsArgument>(argument.value).values;
  const auto list = without_option(argument.type)->cast<c10::ListType>();
  if (list && list->getElementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const int slot : values)
      tensors.push_back(slot < 0 ? std::nullopt : std::optional(slots[index(slot)]));
    return tensors;
  }
  c10::List<at::Tensor> tensors;
  for (const int slot : values)
    tensors.push_back(slot < 0 ? at::Tensor() : slots[index(slot)]);
  return tensors;
}

void GraphCall::call_operator(const Step& step, torch::jit::Stack& stack) {
  try {
    step.handle->callBoxed(stack);
  } catch (const c10::Error& error) {
    throw plan::InputError(fmt::format("{}: {}{}", step.node->op,
                                       exec::first_line(error.what_without_backtrace()),
                                       place_words(*step.node)));
  }
}

void GraphCall::call(const Step& step, exec::Tensors& slots, GraphRun& run) {
  const at::AutoGradMode mode(step.with_gradient && at::GradMode::is_enabled());
  torch::jit::Stack stack;
  for (const Argument& argument : step.arguments)
    stack.push_back(value_of(argument, slots, run));
  if (step.is_dropout) {
    at::Tensor output = dropped(stack[0].toTensor(), stack[1].toDouble(), stack[2].toBool(), run);
    stack.clear();
    stack.emplace_back(std::move(output));
  } else {
    call_operator(step, stack);
  }
  for (std::size_t o = 0; o < step.outputs.size() && o < stack.size(); ++o) {
    const plan::OperatorOutput& output = step.outputs[o];
    if (!output.is_list) {
      if (output.values.front() >= 0)
        slots[index(output.values.front())] = stack[o].toTensor();
      continue;
    }
    const auto made = stack[o].toTensorVector();
    for (std::size_t v = 0; v < output.values.size() && v < made.size(); ++v)
      if (output.values[v] >= 0)
        slots[index(output.values[v])] = made[v];
  }
}

}  // namespace pipewright::engine
