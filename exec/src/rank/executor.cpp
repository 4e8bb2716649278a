#include "pipewright/exec/rank/executor.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <thread>

#include "checks.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/log.hpp"
#include "pipewright/exec/rank/step_result.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/exec/stage/stage_state.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "rank_worker.hpp"
#include "stall_guard.hpp"

namespace pipewright::exec {
namespace {

std::vector<JobRank> local_ranks(const JobGrid& grid, const ExecutorOptions& options) {
  std::vector<JobRank> here;
  for (int rank = 0; rank < grid.size(); ++rank)
    if (!options.only_rank || *options.only_rank == rank)
      here.push_back(grid.rank(rank));
  return here;
}

std::shared_ptr<Transport> transport_for(const plan::Program& program, const JobGrid& grid,
                                         const ExecutorOptions& options) {
  if (options.transport)
    return options.transport;
  const bool wait = program.blocking && program.transfers == plan::TransferMode::Rendezvous;
  return make_in_process_transport(grid.size(), wait);
}

/// Returns a Program that gathers the parameters of all sharded stages.
plan::Program gathering(const plan::Program& trained) {
  plan::Program program{
      .microbatches = trained.microbatches, .placement = trained.placement, .ranks = {}};
  for (const auto& instructions : trained.ranks) {
    auto& own = program.ranks.emplace_back();
    for (const plan::Instruction& i : instructions)
      if (i.kind == plan::InstructionKind::Unshard &&
          std::find(own.begin(), own.end(), i) == own.end())
        own.push_back(i);
  }
  return program;
}

}  // namespace

JobGrid grid_of(const plan::Program& program, const ExecutorOptions& options) {
  return {static_cast<int>(program.ranks.size()), options.replicas, options.shards, options.axes,
          options.expert_ranks};
}

struct Executor::State {
  State(plan::Program p, const plan::Partition& partition, const TrainingSetup& s,
        ExecutorOptions o)
      : program(std::move(p)),
        gathers(gathering(program)),
        setup(s),
        options(std::move(o)),
        grid(grid_of(program, options)),
        transport(transport_for(program, grid, options)) {
    if (setup.tensor_groups == 0)
      setup.tensor_groups = options.shards;
    for (const JobRank& job_rank : local_ranks(grid, options))
      workers.push_back(std::make_unique<RankWorker>(job_rank, device_of(job_rank.in_job()),
                                                     program, partition, setup, options, *transport,
                                                     grid.size()));
    gate.emplace(static_cast<std::ptrdiff_t>(workers.size()) + 1);
    for (std::size_t worker = 0; worker < workers.size(); ++worker)
      threads.emplace_back([this, worker] { serve(worker); });
    if (options.stall.count() > 0 && !options.only_rank)
      guard.emplace(
          options.stall, [this] { return beats(); }, options.when_stalled);
  }

  ~State() {
    guard.reset();
    finished = true;
    gate->arrive_and_wait();
    for (std::thread& thread : threads)
      thread.join();
  }

  /// Runs a rank's thread: one pass between two meetings at the gate.
  void serve(std::size_t worker) {
    at::set_num_threads(1);
    const int rank = workers[worker]->job_rank().in_job();
    log_as_rank(rank);
    if (options.pin_threads)
      pin_rank(device_of(rank).device, rank, grid.size());
    for (;;) {
      gate->arrive_and_wait();
      if (finished)
        return;
      try {
        workers[worker]->run(*running, pass, begin);
      } catch (...) {
        end_all(std::current_exception());
        workers[worker]->stop_reading();
      }
      gate->arrive_and_wait();
    }
  }

  RankDevice device_of(int rank) const {
    return options.devices.empty() ? RankDevice() : options.devices[static_cast<std::size_t>(rank)];
  }

  void end_all(const std::exception_ptr& why) {
    const std::lock_guard lock(failure_mutex);
    ended = true;
    try {
      std::rethrow_exception(why);
    } catch (const Aborted&) {  // a consequence; the cause counts if it is in this process
      if (!aborted)
        aborted = why;
      transport->abort("another rank has stopped");
    } catch (const std::exception& error) {
      if (!failure)
        failure = why;
      transport->abort(error.what());
    }
  }

  std::vector<Heartbeat> beats() const {
    std::vector<Heartbeat> all;
    if (in_pass)
      for (const auto& worker : workers)
        all.push_back(worker->beat());
    return all;
  }

  bool stopped() const { return options.stop != nullptr && options.stop->load(); }

  /// Runs one pass on all ranks of this process. Returns false if it was stopped.
  bool run(const plan::Program& what, const Pass& which) {
    if (ended)
      throw std::logic_error("this executor has ended");
    running = &what;
    pass = which;
    begin = Clock::now();
    in_pass = true;
    gate->arrive_and_wait();
    gate->arrive_and_wait();
    in_pass = false;
    if (failure)
      std::rethrow_exception(failure);
    if (ended && !stopped())
      std::rethrow_exception(aborted);
    return !ended;
  }

  /// Keeps the parameters of all stages of this process whole while it lives. All processes of a
  /// job must create one at the same time.
  class WholeParameters {
   public:
    explicit WholeParameters(State& state)
        : state_(state), gathers_(plan::gathers_parameters(state.program)) {
      if (gathers_ && !state_.run(state_.gathers, {.training = false, .observed = false}))
        throw Aborted("stopped");
    }
    ~WholeParameters() {
      for (const auto& worker : state_.workers)
        for (const auto& [index, stage] : worker->stages())
          stage->free_parameters();
    }
    WholeParameters(const WholeParameters&) = delete;
    WholeParameters& operator=(const WholeParameters&) = delete;

    bool gathers() const { return gathers_; }

   private:
    State& state_;
    bool gathers_;
  };

  /// Returns the losses by microbatch of the batch: all of them if the Program shares them,
  /// otherwise those that ranks of this process know.
  std::vector<MicrobatchLoss> losses() const {
    if (const auto& shared = workers.front()->losses(); !shared.empty())
      return shared;
    std::vector<MicrobatchLoss> losses(
        static_cast<std::size_t>(running->microbatches * options.replicas));
    for (const auto& worker : workers)
      note_known_losses(*running, worker->job_rank(), worker->stages(), losses);
    return losses;
  }

  /// Puts the losses of a pass into its result if all are known.
  template <class Result>
  void tell_losses(Result& result) const {
    const auto all = losses();
    if (!std::all_of(all.begin(), all.end(), [](const auto& own) { return own.is_known; }))
      return;
    exec::tell_losses(all, result);
  }

  /// Returns the outputs by microbatch of the batch, from the last stages of this process.
  std::vector<Tensors> outputs() const {
    const int last = plan::stage_count(*running) - 1;
    std::vector<Tensors> outputs;
    for (const auto& worker : workers) {
      const auto found = worker->stages().find(last);
      if (found == worker->stages().end())
        continue;
      outputs.resize(static_cast<std::size_t>(running->microbatches * options.replicas));
      const int first = running->microbatches * worker->job_rank().replica;
      for (int m = 0; m < running->microbatches; ++m)
        if (running->placement.rank_of(last, m) == worker->job_rank().rank)
          outputs.at(static_cast<std::size_t>(first + m)) =
              std::move(found->second->kept_outputs()[static_cast<std::size_t>(m)]);
    }
    return outputs;
  }

  void require_whole_outputs() const {
    if (options.shards > 1 && setup.layers.back().build_shard)
      throw plan::InputError(
          fmt::format("the outputs of layer {} were requested, but they are divided among "
                      "tensor-parallel ranks. Use one tensor-parallel rank",
                      setup.layers.back().name));
  }

  plan::Program program, gathers;
  TrainingSetup setup;
  ExecutorOptions options;
  JobGrid grid;
  std::shared_ptr<Transport> transport;
  std::vector<std::unique_ptr<RankWorker>> workers;  // by rank
  std::vector<std::thread> threads;
  std::optional<std::barrier<>> gate;

  // Written only between two meetings, by the thread that starts passes.
  const plan::Program* running = nullptr;
  Pass pass;
  Clock::time_point begin;
  bool finished = false;
  std::atomic<bool> in_pass{false};

  std::mutex failure_mutex;
  std::exception_ptr failure, aborted;
  bool ended = false;
  std::optional<StallGuard> guard;
};

Executor::Executor(plan::Program program, const plan::Partition& partition,
                   const TrainingSetup& setup, ExecutorOptions options) {
  check(program, partition, setup, options);
  state_ = std::make_unique<State>(std::move(program), partition, setup, std::move(options));
}

Executor::~Executor() = default;

std::optional<StepResult> Executor::step(int step, StepOptions how) {
  if (how.outputs)
    state_->require_whole_outputs();
  if (!state_->run(state_->program, {.data = state_->setup.data,
                                     .step = step,
                                     .keep_outputs = how.outputs,
                                     .continues = how.continues}))
    return {};
  const std::chrono::duration<double> begin = state_->begin.time_since_epoch();
  const std::chrono::duration<double> duration = Clock::now() - state_->begin;
  const RankWorker& any = *state_->workers.front();
  StepResult result{.begin = {begin.count()},
                    .duration = {duration.count()},
                    .gradient_norm = any.gradient_norm(),
                    .skipped = any.skipped()};
  state_->tell_losses(result);
  if (how.outputs)
    result.outputs = state_->outputs();
  return result;
}

std::optional<Evaluation> Executor::evaluate(const plan::Program& program, const Dataset& data,
                                             int step, EvaluationPass how) {
  check_evaluation(program, state_->program);
  if (how.outputs)
    state_->require_whole_outputs();
  if (!state_->run(program, {.data = &data,
                             .step = step,
                             .training = false,
                             .keep_outputs = how.outputs,
                             .loss = how.loss}))
    return {};
  Evaluation result;
  if (how.loss)
    state_->tell_losses(result);
  if (how.outputs)
    result.outputs = state_->outputs();
  return result;
}

std::vector<at::Tensor> Executor::parameters() const {
  const State::WholeParameters gathered(*state_);
  std::map<int, std::map<std::pair<int, int>, const Stage*>> stages;  // one replica of each part
  for (const auto& worker : state_->workers)
    for (const auto& [index, stage] : worker->stages())
      stages[index].try_emplace({worker->job_rank().part_of_experts(), worker->job_rank().shard},
                                stage.get());
  std::vector<at::Tensor> parameters;
  for (const auto& [index, by_shard] : stages) {
    std::vector<const Stage*> shards;
    for (const auto& [shard, stage] : by_shard)
      shards.push_back(stage);
    for (const at::Tensor& parameter : whole_parameters(shards))
      parameters.push_back(gathered.gathers() ? parameter.detach().clone() : parameter);
  }
  return parameters;
}

Snapshot Executor::snapshot(int next_step, bool copied) const {
  const State::WholeParameters whole(*state_);
  Snapshot snapshot{
      training_state(
          state_->setup, state_->program, state_->options.replicas, next_step,
          device_in_words(state_->device_of(state_->workers.front()->job_rank().in_job()))),
      {}};
  LossScaler& scaler = state_->workers.front()->scaler();
  snapshot.training.loss_scale = scaler.scale();
  snapshot.training.steps_since_overflow = scaler.good_steps();
  for (const auto& worker : state_->workers)
    for (const auto& [index, stage] : worker->stages()) {
      const JobRank own = worker->job_rank();
      const bool is_first_rank = own.rank == state_->program.placement.ranks_of(index).front();
      append_state(*stage,
                   {.of_stage = is_first_rank && own.replica == 0,
                    .of_experts = is_first_rank && own.replica < own.expert_ranks},
                   snapshot.layers, copied);
    }
  return snapshot;
}

void Executor::restore(const Checkpoint& checkpoint, bool weights) {
  for (const auto& worker : state_->workers) {
    const ChargeTo charge(worker->account());
    const OnStream stream(worker->stream());
    for (const auto& [index, stage] : worker->stages()) {
      if (weights)
        restore_weights(*stage, checkpoint);
      restore_optimizer(*stage, checkpoint);
    }
    worker->scaler().restore(checkpoint.training().loss_scale,
                             checkpoint.training().steps_since_overflow);
  }
}

void Executor::visit_stages(const std::function<void(Stage&)>& visit) const {
  const State::WholeParameters whole(*state_);
  for (const auto& worker : state_->workers) {
    const ChargeTo charge(worker->account());
    const OnStream stream(worker->stream());
    for (const auto& [index, stage] : worker->stages())
      visit(*stage);
  }
}

void Executor::take_over(const Executor& other) {
  for (std::size_t w = 0; w < state_->workers.size(); ++w) {
    RankWorker& from = *other.state_->workers.at(w);
    const OnStream stream(state_->workers[w]->stream());
    for (const auto& [index, stage] : state_->workers[w]->stages())
      copy_state(*from.stages().at(index), *stage);
    state_->workers[w]->scaler() = from.scaler();
  }
}

double Executor::loss_scale() const { return state_->workers.front()->scaler().scale(); }

}  // namespace pipewright::exec
