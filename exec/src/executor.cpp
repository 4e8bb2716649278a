#include "pipewright/exec/executor.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "pipewright/plan/computation.hpp"
#include "pipewright/plan/error.hpp"
#include "rank_worker.hpp"

namespace pipewright::exec {
namespace {

bool can_run(plan::InstructionKind kind) {
  return kind != plan::InstructionKind::Recompute && !plan::is_reduce(kind) &&
         kind != plan::InstructionKind::Unshard && kind != plan::InstructionKind::Reshard;
}

void check(const plan::Program& program, const plan::Partition& partition,
           const TrainingSetup& setup) {
  plan::validate(program);
  require_trainable(program);
  if (plan::layer_count(partition) != static_cast<int>(setup.layers.size()))
    throw plan::InputError(fmt::format("the partition {} is for {} layers, but the model has {}",
                                       plan::to_string(partition.boundaries),
                                       plan::layer_count(partition), setup.layers.size()));
  if (partition.rank_of_stage != program.placement.routes.front())
    throw plan::InputError("partition and program place the stages on different ranks");
}

/// Keeps a rank on one core, so that the kernel does not move it away from its caches.
void pin_to_core(int rank, int ranks) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < ranks)
    return;
  int skip = rank;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0)
      continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

}  // namespace

void require_trainable(const plan::Program& program) {
  if (program.placement.is_bidirectional())
    throw plan::InputError(
        "the program runs microbatches in two directions, with a copy of each stage on two ranks: "
        "the executor trains one copy only");
  if (plan::is_forward_only(program))
    throw plan::InputError("the program computes no gradients: there is nothing to train");
  if (program.asynchronous)
    throw plan::InputError(
        "the program steps its optimizers without a flush: the executor keeps one version of the "
        "weights only");
  for (const auto& instructions : program.ranks)
    for (const plan::Instruction& i : instructions)
      if (!can_run(i.kind))
        throw plan::InputError(fmt::format("{}: the executor cannot run this yet", to_string(i)));
}

struct Executor::State {
  State(plan::Program p, const plan::Partition& partition, const TrainingSetup& s,
        ExecutorOptions o)
      : program(std::move(p)),
        setup(s),
        options(std::move(o)),
        transport(make_in_process_transport(program)),
        gate(static_cast<std::ptrdiff_t>(program.ranks.size()) + 1) {
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
      workers.push_back(std::make_unique<RankWorker>(static_cast<int>(rank), program, partition,
                                                     setup, options, *transport));
    for (std::size_t rank = 0; rank < workers.size(); ++rank)
      threads.emplace_back([this, rank] { serve(rank); });
  }

  ~State() {
    finished = true;
    gate.arrive_and_wait();
    for (std::thread& thread : threads)
      thread.join();
  }

  /// A rank's thread: one turn a step, between two meetings at the gate.
  void serve(std::size_t rank) {
    at::set_num_threads(1);
    if (options.pin_threads)
      pin_to_core(static_cast<int>(rank), static_cast<int>(workers.size()));
    for (;;) {
      gate.arrive_and_wait();
      if (finished)
        return;
      try {
        workers[rank]->run(current_step, step_begin);
      } catch (...) {
        end_all(std::current_exception());
      }
      gate.arrive_and_wait();
    }
  }

  void end_all(std::exception_ptr why) {
    {
      const std::lock_guard lock(failure_mutex);
      ended = true;
      try {
        std::rethrow_exception(why);
      } catch (const Aborted&) {  // a consequence, not a cause
      } catch (...) {
        if (!failure)
          failure = why;
      }
    }
    transport->abort();
  }

  double mean_loss() const {
    const int last = plan::stage_count(program) - 1;
    for (const auto& worker : workers)
      for (const auto& [index, stage] : worker->stages())
        if (index == last)
          return std::accumulate(stage->losses().begin(), stage->losses().end(), 0.0) /
                 program.microbatches;
    return 0;
  }

  plan::Program program;
  TrainingSetup setup;
  ExecutorOptions options;
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<RankWorker>> workers;  // by rank
  std::vector<std::thread> threads;
  std::barrier<> gate;

  // Written between two meetings by the thread that calls `step` alone.
  int current_step = 0;
  Clock::time_point step_begin;
  bool finished = false;

  std::mutex failure_mutex;
  std::exception_ptr failure;
  bool ended = false;
};

Executor::Executor(plan::Program program, const plan::Partition& partition,
                   const TrainingSetup& setup, ExecutorOptions options) {
  check(program, partition, setup);
  state_ = std::make_unique<State>(std::move(program), partition, setup, std::move(options));
}

Executor::~Executor() = default;

std::optional<StepResult> Executor::step(int step) {
  if (state_->ended)
    throw std::logic_error("this executor has ended");
  state_->current_step = step;
  state_->step_begin = Clock::now();
  state_->gate.arrive_and_wait();
  state_->gate.arrive_and_wait();
  const std::chrono::duration<double> duration = Clock::now() - state_->step_begin;
  if (state_->failure)
    std::rethrow_exception(state_->failure);
  if (state_->ended)
    return {};
  return StepResult{state_->mean_loss(), {duration.count()}};
}

std::vector<at::Tensor> Executor::parameters() const {
  std::vector<at::Tensor> parameters;
  for (int index = 0; index < plan::stage_count(state_->program); ++index)
    for (const auto& worker : state_->workers) {
      const auto found = worker->stages().find(index);
      if (found == worker->stages().end())
        continue;
      const auto& own = found->second->parameters();
      parameters.insert(parameters.end(), own.begin(), own.end());
    }
  return parameters;
}

}  // namespace pipewright::exec
