#pragma once

// Operators of an exported graph, resolved once and called as often as a layer runs.

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::engine {

/// What a run of a graph's part needs beside its tensors.
struct GraphRun {
  bool training = true;
  at::Device device = at::kCPU;
  std::optional<at::Generator> generator{};  // on the CPU; for what is dropped
};

/// A run of operators, with places for the tensors that go in and out. The program must outlive it;
/// any thread may run it.
class GraphCall {
 public:
  /// `inputs` and `weights` are values of the program, in the order in which `run` gets them.
  /// Throws InputError with all operators that no loaded library has.
  GraphCall(const plan::ExportedProgram& program, const std::vector<int>& nodes,
            const std::vector<int>& inputs, const std::vector<int>& weights,
            const std::vector<int>& outputs);

  /// Tensors that nothing needs any more are let go as soon as that is so.
  exec::Tensors run(const exec::Tensors& inputs, const exec::Tensors& weights, GraphRun& run) const;

  /// Whether something is drawn from the run's generator.
  bool draws() const { return draws_; }
  /// Whether something is drawn from LibTorch's own.
  bool draws_from_global() const { return draws_from_global_; }

 private:
  struct Argument {
    plan::ArgumentValue value;  // tensors by slot
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
    std::vector<plan::OperatorOutput> outputs;  // by slot
    std::vector<int> done;                      // slots that nothing needs any more
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
