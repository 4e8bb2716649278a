#pragma once

// Operators of an exported graph, resolved once and called each time a layer runs.

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::engine {

/// The settings of one run of a graph segment.
struct GraphRun {
  bool training = true;
  at::Device device = at::kCPU;
  std::optional<at::Generator> generator{};  // on the CPU; used by dropout
};

/// A callable sequence of operators with given inputs and outputs. The program must outlive it. Any
/// thread may run it.
class GraphCall {
 public:
  /// `inputs` and `weights` are values of the program, in the order in which `run` receives them.
  /// Throws InputError that lists all operators that no loaded library provides.
  GraphCall(const plan::ExportedProgram& program, const std::vector<int>& nodes,
            const std::vector<int>& inputs, const std::vector<int>& weights,
            const std::vector<int>& outputs);

  /// Runs the operators. Releases each tensor after its last use.
  exec::Tensors run(const exec::Tensors& inputs, const exec::Tensors& weights, GraphRun& run) const;

  /// Returns true if the operators use the run's generator.
  bool draws() const { return draws_; }
  /// Returns true if the operators use LibTorch's global generator.
  bool draws_from_global() const { return draws_from_global_; }

 private:
  struct Argument {
    plan::ArgumentValue value;  // tensors as slots
    c10::TypePtr type;
    c10::IValue constant;
    enum class Kind {
      Constant,
      OneTensor,
      TensorList,
      Device,
      InTraining,
      ShareInTraining,
      Generator
    };
    Kind kind = Kind::Constant;
  };
  struct Step {
    std::optional<c10::OperatorHandle> handle;
    bool is_dropout = false;
    bool with_gradient = true;
    std::vector<Argument> arguments;
    std::vector<plan::OperatorOutput> outputs;  // as slots
    std::vector<int> done;                      // slots to release after this step
    const plan::ExportedNode* node = nullptr;
  };

  class Compiler;

  static void call(const Step& step, exec::Tensors& slots, GraphRun& run);
  static void call_operator(const Step& step, torch::jit::Stack& stack);
  static c10::IValue value_of(const Argument& argument, const exec::Tensors& slots,
                              const GraphRun& run);

  std::vector<Step> steps_;
  std::vector<int> inputs_, weights_, outputs_;  // slots
  int slots_ = 0;
  bool draws_ = false, draws_from_global_ = false;
};

}  // namespace pipewright::engine
