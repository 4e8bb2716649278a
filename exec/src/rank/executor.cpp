#include "pipewright/exec/rank/executor.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "checks.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "rank_worker.hpp"
#include "stage/stage_state.hpp"
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

/// Gathers the parameters of all stages that are sharded.
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

  /// A rank's thread: one turn per pass, between two meetings at the gate.
  void serve(std::size_t worker) {
    at::set_num_threads(1);
    const int rank = workers[worker]->job_rank().in_job();
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
    } catch (const Aborted&) {  // a consequence, and not the cause if that is in this process
      if (!aborted)
        aborted = why;
      transport->abort("another rank has stopped");
    } catch (const std::exception& error) {
      if (!failure)
        failure = why;
      transport->abort(error.what());
    }
  }

  std::vector<Beat> beats() const {
    std::vector<Beat> all;
    if (in_pass)
      for (const auto& worker : workers)
        all.push_back(worker->beat());
    return all;
  }

  bool stopped() const { return options.stop != nullptr && options.stop->load(); }

  /// Runs one pass on all ranks of this process. False when it was stopped.
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

  /// While it lives, the parameters of all stages here are whole. Every process of a job makes one
  /// at the same time.
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
          if (stage->spec().shard.parameters)
            stage->let_go();
    }
    WholeParameters(const WholeParameters&) = delete;
    WholeParameters& operator=(const WholeParameters&) = delete;

    bool gathers() const { return gathers_; }

   private:
    State& state_;
    bool gathers_;
  };

  /// By microbatch of the batch: as the Program shares them, or else as the ranks here know them.
  std::vector<double> losses() const {
    if (const auto& shared = workers.front()->losses(); !shared.empty())
      return shared;
    std::vector<double> losses(static_cast<std::size_t>(running->microbatches * options.replicas));
    for (const auto& worker : workers)
      note_known_losses(*running, worker->job_rank(), worker->stages(), losses);
    return losses;
  }

  /// Over the batch, added up in the order of microbatches.
  double mean_loss() const {
    const auto all = losses();
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }

  plan::Program program, gathers;
  TrainingSetup setup;
  ExecutorOptions options;
  JobGrid grid;
  std::shared_ptr<Transport> transport;
  std::vector<std::unique_ptr<RankWorker>> workers;  // by rank
  std::vector<std::thread> threads;
  std::optional<std::barrier<>> gate;

  // Written between two meetings by the thread that starts passes alone.
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

std::optional<StepResult> Executor::step(int step, bool goes_on) {
  if (!state_->run(state_->program, {.data = state_->setup.data, .step = step, .goes_on = goes_on}))
    return {};
  const std::chrono::duration<double> begin = state_->begin.time_since_epoch();
  const std::chrono::duration<double> duration = Clock::now() - state_->begin;
  const RankWorker& any = *state_->workers.front();
  return StepResult{
      state_->mean_loss(), {begin.count()}, {duration.count()}, any.gradient_norm(), any.skipped()};
}

std::optional<Evaluation> Executor::evaluate(const plan::Program& program, const Dataset& data,
                                             int step, bool keep_outputs) {
  check_evaluation(program, state_->program, state_->options);
  if (keep_outputs && state_->options.shards > 1 && state_->setup.layers.back().build_shard)
    throw plan::InputError(fmt::format(
        "the outputs of layer {} are asked for, but shards share them out: one shard is needed",
        state_->setup.layers.back().name));
  if (!state_->run(program,
                   {.data = &data, .step = step, .training = false, .keep_outputs = keep_outputs}))
    return {};
  Evaluation result{state_->mean_loss()};
  const int last = plan::stage_count(program) - 1;
  for (const auto& worker : state_->workers) {
    const auto found = worker->stages().find(last);
    if (found == worker->stages().end() || !keep_outputs)
      continue;
    const int batch = program.microbatches * state_->options.replicas;
    const int first = program.microbatches * worker->job_rank().replica;
    result.outputs.resize(static_cast<std::size_t>(batch));
    for (int m = 0; m < program.microbatches; ++m)
      if (program.placement.rank_of(last, m) == worker->job_rank().rank)
        result.outputs.at(static_cast<std::size_t>(first) + static_cast<std::size_t>(m)) =
            std::move(found->second->kept_outputs()[static_cast<std::size_t>(m)]);
  }
  return result;
}

std::vector<at::Tensor> Executor::parameters() const {
  const State::WholeParameters gathered(*state_);
  std::map<int, std::map<std::pair<int, int>, const Stage*>> stages;  // one copy of each part
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

void Executor::restore(const Checkpoint& checkpoint) {
  for (const auto& worker : state_->workers) {
    const ChargeTo charge(worker->account());
    const OnStream stream(worker->stream());
    for (const auto& [index, stage] : worker->stages())
      restore_state(*stage, checkpoint);
    worker->scaler().restore(checkpoint.training().loss_scale,
                             checkpoint.training().steps_since_overflow);
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
