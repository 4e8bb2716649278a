#pragma once

// Trains a PipelineModule batch by batch. One call runs the schedule, the gradient reductions and
// the optimizer step.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/engine/engine_checkpoints.hpp"
#include "pipewright/engine/microbatches.hpp"
#include "pipewright/engine/module_state.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/engine/whole_batch.hpp"
#include "pipewright/exec/data/loader.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/transport/rank_group.hpp"
#include "pipewright/plan/generators/schedule_choice.hpp"

namespace pipewright::engine {

struct EngineOptions {
  int train_batch_size = 1;  // samples per step, over all data-parallel replicas
  int microbatch_size = 1;   // samples per microbatch
  /// A schedule's name, or a custom schedule: a Schedule, a Program, a ScheduleDescriptor with a
  /// generator, or the result of `plan::schedule_from_file`.
  plan::ScheduleChoice schedule{};
  int schedule_group = 0;  // microbatches per round, or per step; 0: the schedule's default
  exec::OptimizerOptions optimizer{};
  at::ScalarType precision = at::kFloat;
  exec::LossScaling loss_scaling{};
  double clip_norm = 0;
  exec::GradientHook before_step{};  // sees each step's gradients and may modify them
  int zero = 0;                      // the ZeRO stage, as in plan::LoweringOptions
  bool exact = true;
  exec::LossOf loss = exec::LossOf::Mean;  // the loss to minimize: mean or sum
  int gradient_groups = 0;
  int tensor_groups = 0;            // 0: one per tensor-parallel rank
  int first_step = 0;               // when resuming: the step at which the checkpoint was taken
  std::vector<StateHooks> hooks{};  // called when weights and checkpoints are saved and loaded
  /// The sizes and the order of the axes are taken from the module's topology.
  exec::ExecutorOptions execution{};
};

struct OutputOptions {
  bool outputs = false;         // return the last stage's outputs
  std::vector<Merge> merges{};  // one per output; empty: concatenate along dimension 0
};

struct EvaluationOptions {
  int microbatches = 0;  // per pipeline; 0: as in training
  bool outputs = false;  // as in OutputOptions
  std::vector<Merge> merges{};
  bool loss = true;        // false: targets are not needed
  bool share_loss = true;  // share the loss with every process; false: only processes that hold the
                           // last stages know it
};

struct BatchEvaluation {
  std::optional<double> loss{};  // over the batch, if requested and known in this process
  std::vector<double> losses{};  // per microbatch, if known in this process
  exec::Tensors outputs{};       // of the microbatches whose last stage is in this process
};

/// The result of a step on a whole batch.
struct BatchStep {
  exec::StepResult step{};  // its losses are per microbatch
  exec::Tensors outputs{};  // as in BatchEvaluation
};

class PipelineEngine {
 public:
  /// Throws InputError if schedule, module and batch size do not fit together.
  PipelineEngine(PipelineModule module, EngineOptions options);
  ~PipelineEngine();

  /// Sets the source that train_batch reads: one microbatch per call, those of all pipelines in
  /// order. Every process must be given the same data. It keeps only what its stages need, and does
  /// not read the source if they need nothing.
  void set_data(exec::BatchSource source);
  /// Sets a function that transforms each microbatch of a BatchSource or a WholeBatch before the
  /// stages receive it. It is not applied to a Dataset.
  void set_batch_function(std::function<exec::Batch(exec::Batch)> function);
  /// Sets the data set. Each rank requests only its own microbatches from `data`, by step and by
  /// microbatch index in the batch, as the executor does. `data` must be safe to call from several
  /// threads (dataset.hpp).
  void set_data(std::shared_ptr<const exec::Dataset> data);

  /// Runs one step on the next batch. Returns nothing if the data has ended (the same on every
  /// rank) or if training was stopped. Throws as Executor::step does.
  std::optional<exec::StepResult> train_batch();
  /// Runs one step on the next batch of `data` instead of the source that was set.
  std::optional<exec::StepResult> train_batch(exec::BatchSource& data);

  /// Runs one step on this batch, split into the microbatches of all pipelines. Each microbatch
  /// contributes to the mean loss in proportion to its samples. Microbatches of unequal size need
  /// `execution.dynamic_shapes`. Every process must call it. Returns nothing if training was
  /// stopped. Throws InputError before computing anything if the batch cannot be split, and
  /// otherwise as Executor::step does.
  std::optional<BatchStep> step(const WholeBatch& batch, const OutputOptions& how = {});

  /// Returns loss and outputs of the next microbatches of `data`, with layers in evaluation mode.
  /// Does not change any training state. Returns nothing at the end of `data`.
  std::optional<BatchEvaluation> eval_batch(exec::BatchSource& data,
                                            const EvaluationOptions& how = {});
  /// Returns loss and outputs of this batch, as eval_batch does.
  std::optional<BatchEvaluation> evaluate(const WholeBatch& batch,
                                          const EvaluationOptions& how = {});

  /// Changes the batch size. The microbatch size stays, so the number of microbatches changes;
  /// weights and optimizer state stay. Throws InputError with the nearest valid sizes if `samples`
  /// does not divide evenly.
  void set_train_batch_size(int samples);
  int train_batch_size() const { return options_.train_batch_size; }
  /// Returns the number of microbatches per step in one pipeline.
  int microbatches() const { return program_.microbatches; }

  /// Return and load weights with `module_state` and `load_module_state` (module_state.hpp),
  /// including the engine's hooks.
  exec::StateDict module_state_dict(const StateOptions& options = {}) const;
  IncompatibleKeys load_module_state_dict(exec::NamedWeights weights,
                                          const LoadOptions& options = {});
  IncompatibleKeys load_module_state_dict(exec::StateDict state, const LoadOptions& options = {});

  /// Adds a checkpoint taken before the next step to `folder`. Every process of a job must call it
  /// at the same point, with a folder that all of them can access. Throws std::runtime_error if
  /// writing failed: on the first process, and on each process that could not write its part. For a
  /// checkpoint written in the background, the next `wait_for_checkpoint` throws instead.
  void save_checkpoint(const std::filesystem::path& folder, const SaveOptions& options = {});
  void wait_for_checkpoint();
  /// Resumes training from the checkpoint, under any plan. Set the data to their beginning: the
  /// part that had been read is read again and skipped. Every process of a job must call it at the
  /// same point. Throws InputError that lists all mismatches, before anything is changed.
  LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder,
                                   const ResumeOptions& options = {});

  /// Returns true if this is the only process, or the one with the first rank of the job.
  bool is_first_process() const;
  /// Returns true if a rank of this process holds the first stage, which reads inputs.
  bool is_first_stage() const { return needs_.inputs; }
  /// Returns true if a rank of this process holds the last stage, which reads targets.
  bool is_last_stage() const { return needs_.targets; }
  /// Returns false while a step's gradients are being accumulated: from its beginning to the last
  /// backward of this process. May be called from any thread, such as an observer's.
  bool is_gradient_accumulation_boundary() const { return backwards_left_ == 0; }

  /// Returns the number of the next step.
  int next_step() const { return step_; }
  const PipelineModule& module() const { return module_; }
  const EngineOptions& options() const { return options_; }
  /// Returns the training setup, from which a SerialTrainer can repeat the same training.
  const exec::TrainingSetup& setup() const { return setup_; }
  exec::Executor& executor() { return *executor_; }

  /// A pipeline runs forwards, backwards and optimizer steps in the order of its schedule, so they
  /// cannot be called one by one. These functions throw an InputError that names the call to use.
  template <class... Arguments>
  [[noreturn]] void forward(const Arguments&...) const {
    refuse("forward");
  }
  template <class... Arguments>
  [[noreturn]] void backward(const Arguments&...) const {
    refuse("backward");
  }
  [[noreturn]] void step() const { refuse("step"); }

 private:
  [[noreturn]] static void refuse(const char* call);
  std::unique_ptr<exec::Executor> make_executor(const plan::Program& program);
  bool all_agree(bool here) const;
  exec::BatchSource source_of(const WholeBatch& batch, int microbatches) const;
  bool fill(exec::StepBuffer& buffer, exec::BatchSource& data, int microbatches) const;
  std::optional<exec::StepResult> run_step(exec::BatchSource& data, bool outputs);
  exec::RankGroup everybody() const;
  std::string from_first(const std::string& text) const;
  exec::TrainingState wanted_state() const;
  IncompatibleKeys restore(const exec::Checkpoint& checkpoint, const ResumeOptions& options,
                           std::vector<std::string>& differences);
  std::filesystem::path looked_up(const std::filesystem::path& folder,
                                  const ResumeOptions& options) const;
  exec::CheckpointWriter& writer_for(const std::filesystem::path& folder,
                                     const SaveOptions& options);
  void leave_out_data();

  PipelineModule module_;
  EngineOptions options_;
  exec::DataNeeds needs_;
  exec::TrainingSetup setup_;
  plan::Program program_;
  exec::BatchSource source_;
  std::function<exec::Batch(exec::Batch)> batch_function_;
  exec::StepBuffer buffer_;
  std::unique_ptr<exec::Executor> executor_;
  std::atomic<int> backwards_left_{0};  // of the current step, on the ranks of this process
  int step_;
  std::int64_t microbatches_read_ = 0;              // since the beginning of the data
  std::int64_t to_leave_out_ = 0;                   // microbatches to skip after the data was reset
  std::unique_ptr<exec::CheckpointWriter> writer_;  // set while a write may be pending
};

}  // namespace pipewright::engine
