#pragma once

// Trains a PipelineModule batch by batch: the schedule, the reductions and the optimizer steps are
// one call.

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
  int train_batch_size = 1;  // samples of a step, over all pipelines
  int microbatch_size = 1;   // samples of one microbatch
  /// A name; or a schedule of one's own: a Schedule, a Program, a ScheduleDescriptor with a
  /// generator, or what `plan::schedule_from_file` reads.
  plan::ScheduleChoice schedule{};
  int schedule_group = 0;  // microbatches of a round, or of a step; 0: as the schedule has it
  exec::OptimizerOptions optimizer{};
  at::ScalarType precision = at::kFloat;
  exec::LossScaling loss_scaling{};
  double clip_norm = 0;
  exec::GradientHook before_step{};  // sees the gradients of each step, and may change them
  int zero = 0;                      // the stage of ZeRO, as in plan::LoweringOptions
  bool exact = true;
  exec::LossOf loss = exec::LossOf::Mean;  // that is trained
  int gradient_groups = 0;
  int tensor_groups = 0;            // 0: one for each shard
  int first_step = 0;               // after a checkpoint: the step that it was taken at
  std::vector<StateHooks> hooks{};  // when weights and checkpoints are saved and loaded
  /// Sizes and order of axes come from the module's topology.
  exec::ExecutorOptions execution{};
};

struct OutputOptions {
  bool outputs = false;         // hand out the last stage's outputs
  std::vector<Merge> merges{};  // how they go together; none: along dimension 0
};

struct EvaluationOptions {
  int microbatches = 0;  // of a pipeline; 0: as in training
  bool outputs = false;  // as of OutputOptions
  std::vector<Merge> merges{};
  bool loss = true;  // without one, no targets are needed
  bool share_loss =
      true;  // every process knows it; else those with the last stage of all pipelines
};

struct BatchEvaluation {
  std::optional<double> loss{};  // over the batch, where it is wanted and known
  std::vector<double> losses{};  // of each microbatch, there
  exec::Tensors outputs{};       // of the batch's microbatches whose last stage is in this process
};

/// A step on a whole batch.
struct BatchStep {
  exec::StepResult step{};  // its losses are those of the microbatches
  exec::Tensors outputs{};  // as of a BatchEvaluation
};

class PipelineEngine {
 public:
  /// Throws InputError when schedule, module and batch size do not go together.
  PipelineEngine(PipelineModule module, EngineOptions options);
  ~PipelineEngine();

  /// What train_batch reads: one microbatch per call, those of all pipelines in order. Every
  /// process is given the same data and keeps what its stages need; where none needs any it is not
  /// read.
  void set_data(exec::BatchSource source);
  /// What is made of each microbatch that any data gives, before its stages get it.
  void set_batch_function(std::function<exec::Batch(exec::Batch)> function);
  /// Each rank asks `data` for its own microbatches alone, by step and microbatch of the batch, as
  /// the executor does: safe to call from several threads (dataset.hpp).
  void set_data(std::shared_ptr<const exec::Dataset> data);

  /// One step on the next batch. Nothing when the data has ended (the same on every rank) or when
  /// it was stopped. Throws as Executor::step.
  std::optional<exec::StepResult> train_batch();
  /// The same on the next batch of `data`, whatever was set.
  std::optional<exec::StepResult> train_batch(exec::BatchSource& data);

  /// One step on this batch, cut into the microbatches of all pipelines; each weighs as much in the
  /// mean loss as it has samples. Where they are not equally large, `execution.dynamic_shapes` is
  /// needed. Every process calls it. Nothing when it was stopped. Throws InputError when the batch
  /// cannot be cut so, before anything is computed, and as Executor::step.
  std::optional<BatchStep> step(const WholeBatch& batch, const OutputOptions& how = {});

  /// Loss and outputs of the next microbatches of `data`, with layers in evaluation mode. Changes
  /// nothing that is trained. Nothing at the end of `data`.
  std::optional<BatchEvaluation> eval_batch(exec::BatchSource& data,
                                            const EvaluationOptions& how = {});
  /// The same on this batch.
  std::optional<BatchEvaluation> evaluate(const WholeBatch& batch,
                                          const EvaluationOptions& how = {});

  /// The microbatch keeps its size, so their number changes; weights and optimizer stay. Throws
  /// InputError with the nearest sizes when that does not divide.
  void set_train_batch_size(int samples);
  int train_batch_size() const { return options_.train_batch_size; }
  /// Microbatches of a step in one pipeline.
  int microbatches() const { return program_.microbatches; }

  /// As `module_state` and `load_module_state` (module_state.hpp), with the engine's hooks.
  exec::StateDict module_state_dict(const StateOptions& options = {}) const;
  IncompatibleKeys load_module_state_dict(exec::NamedWeights weights,
                                          const LoadOptions& options = {});
  IncompatibleKeys load_module_state_dict(exec::StateDict state, const LoadOptions& options = {});

  /// Adds one of the next step to the checkpoints of `folder`. Every process of a job calls it at
  /// once, with a folder that all of them see. Throws std::runtime_error when it was not written
  /// (on the first process, and on one that could not write its part); of one that is written in
  /// the background the next `wait_for_checkpoint` does.
  void save_checkpoint(const std::filesystem::path& folder, const SaveOptions& options = {});
  void wait_for_checkpoint();
  /// Goes on where the checkpoint was taken, under whatever plan. The data are to be set from their
  /// beginning: what had been read of them is read again and left out. Every process of a job calls
  /// it at once. Throws InputError with all that does not fit, before anything is changed.
  LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder,
                                   const ResumeOptions& options = {});

  /// Whether this is the only process, or the one with the first rank of the job.
  bool is_first_process() const;
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
  const EngineOptions& options() const { return options_; }
  /// What is trained, for a SerialTrainer to do the same.
  const exec::TrainingSetup& setup() const { return setup_; }
  exec::Executor& executor() { return *executor_; }

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
  std::atomic<int> backwards_left_{0};  // of the step under way, on the ranks of this process
  int step_;
  std::int64_t microbatches_read_ = 0;  // of the data, since their beginning
  std::int64_t to_leave_out_ = 0;       // of data that are read from their beginning again
  std::unique_ptr<exec::CheckpointWriter> writer_;  // while something may be written
};

}  // namespace pipewright::engine
