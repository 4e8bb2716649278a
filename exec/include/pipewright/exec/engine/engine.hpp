#pragma once

// Trains a PipelineModule batch by batch: the schedule, the reductions and the optimizer steps are
// one call.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/data/loader.hpp"
#include "pipewright/exec/engine/microbatches.hpp"
#include "pipewright/exec/engine/pipeline_module.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/generators/schedule_choice.hpp"

namespace pipewright::exec {

struct EngineOptions {
  int train_batch_size = 1;  // samples of a step, over all pipelines
  int microbatch_size = 1;   // samples of one microbatch
  /// A name; or a schedule of one's own: a Schedule, a Program, a ScheduleDescriptor with a
  /// generator, or what `plan::schedule_from_file` reads.
  plan::ScheduleChoice schedule{};
  int schedule_group = 0;  // microbatches of a round, or of a step; 0: as the schedule has it
  OptimizerOptions optimizer{};
  at::ScalarType precision = at::kFloat;
  LossScaling loss_scaling{};
  double clip_norm = 0;
  int zero = 0;  // the stage of ZeRO, as in plan::LoweringOptions
  bool exact = true;
  int gradient_groups = 0;
  int tensor_groups = 0;  // 0: one for each shard
  int first_step = 0;     // after a checkpoint: the step that it was taken at
  /// Sizes and order of axes come from the module's topology.
  ExecutorOptions execution{};
};

struct EvaluationOptions {
  int microbatches = 0;         // of a pipeline; 0: as in training
  bool outputs = false;         // hand out the last stage's outputs
  std::vector<Merge> merges{};  // how they go together; none: along dimension 0
};

struct BatchEvaluation {
  double loss = 0;    // mean over the batch; known to every process
  Tensors outputs{};  // of the batch's microbatches whose last stage is in this process
};

class PipelineEngine {
 public:
  /// Throws InputError when schedule, module and batch size do not go together.
  PipelineEngine(PipelineModule module, EngineOptions options);
  ~PipelineEngine();

  /// What train_batch reads: one microbatch per call, those of all pipelines in order. Every
  /// process is given the same data and keeps what its stages need; where none needs any it is not
  /// read.
  void set_data(BatchSource source);

  /// One step on the next batch. Nothing when the data has ended (the same on every rank) or when
  /// it was stopped. Throws as Executor::step.
  std::optional<StepResult> train_batch();

  /// Loss and outputs of the next microbatches of `data`, with layers in evaluation mode. Changes
  /// nothing that is trained. Nothing at the end of `data`.
  std::optional<BatchEvaluation> eval_batch(BatchSource& data, const EvaluationOptions& how = {});

  /// The microbatch keeps its size, so their number changes; weights and optimizer stay. Throws
  /// InputError with the nearest sizes when that does not divide.
  void set_train_batch_size(int samples);
  int train_batch_size() const { return options_.train_batch_size; }
  /// Microbatches of a step in one pipeline.
  int microbatches() const { return program_.microbatches; }

  /// Whether a rank of this process holds the first stage, and so reads inputs.
  bool is_first_stage() const { return needs_.inputs; }
  /// Whether one holds the last stage, and so reads targets.
  bool is_last_stage() const { return needs_.targets; }
  /// False while gradients of a step are being added up: from its begin to the last backward of
  /// this process. May be asked from any thread, such as an observer's.
  bool is_gradient_accumulation_boundary() const { return backwards_left_ == 0; }

  /// The step that comes next.
  int next_step() const { return step_; }
  const PipelineModule& module() const { return module_; }
  /// What is trained, for a SerialTrainer to do the same.
  const TrainingSetup& setup() const { return setup_; }
  Executor& executor() { return *executor_; }

  /// A pipeline runs forwards, backwards and optimizer steps in the order of its schedule, so there
  /// is no calling them one by one: these throw InputError that says what to call.
  template <class... Arguments>
  [[noreturn]] void forward(const Arguments&...) const {
    refuse("forward");
  }
  template <class... Arguments>
  [[noreturn]] void backward(const Arguments&...) const {
    refuse("backward");
  }
  template <class... Arguments>
  [[noreturn]] void step(const Arguments&...) const {
    refuse("step");
  }

 private:
  [[noreturn]] static void refuse(const char* call);
  std::unique_ptr<Executor> make_executor(const plan::Program& program);
  bool all_agree(bool here) const;

  PipelineModule module_;
  EngineOptions options_;
  DataNeeds needs_;
  TrainingSetup setup_;
  plan::Program program_;
  BatchSource source_;
  StepBuffer buffer_;
  std::unique_ptr<Executor> executor_;
  std::atomic<int> backwards_left_{0};  // of the step under way, on the ranks of this process
  int step_;
};

}  // namespace pipewright::exec
