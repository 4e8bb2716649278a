#include "pipewright/models/megatron/megatron_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "rank_parameters.hpp"
#include "rank_stages.hpp"
#include "saved_activations.hpp"
#include "standing.hpp"

namespace pipewright::models {
namespace {

using megatron::RankStage;

/// Bytes that the optimizer step needs for norms and counters.
constexpr long long of_step = 4096;

/// Returns the rank's actions, in Megatron's order.
std::vector<plan::Action> actions_of(const MegatronRun& run) {
  const int pipeline = run.cut.pipeline;
  const int microbatches = std::max(1, run.cut.microbatches(run.training.batch));
  const plan::Schedule schedule =
      run.cut.chunks > 1
          ? plan::make_megatron_interleaved(pipeline, microbatches, run.cut.chunks, run.cut.group)
          : plan::make_1f1b(pipeline, microbatches);
  return schedule.ranks[static_cast<std::size_t>(run.rank)];
}

/// The state of the activations at the moment of a step when they need most memory.
struct Busiest {
  std::vector<long long> in_flight;  // microbatches per chunk
  std::size_t chunk = 0;             // the chunk that computes
  plan::ActionKind kind = plan::ActionKind::Forward;
  long long total = -1;
};

/// Walks through the rank's actions of a step.
class StepWalk {
 public:
  StepWalk(const MegatronRun& run, const std::vector<RankStage>& stages) : run_(run) {
    for (const RankStage& stage : stages) {
      kept_.push_back(megatron::kept_of_stage(run, stage));
      totals_.push_back(kept_.back().total());
      loss_.push_back(megatron::loss_work(run, stage));
      backward_.push_back(megatron::brought_back(run, stage) + megatron::backward_work(run, stage));
    }
  }

  Busiest busiest() const {
    Busiest most;
    std::vector<long long> in_flight(totals_.size(), 0);
    long long kept = 0;
    for (const plan::Action& action : actions_of(run_)) {
      const auto chunk = static_cast<std::size_t>(action.stage / run_.cut.pipeline);
      const bool forward = action.kind == plan::ActionKind::Forward;
      if (forward) {
        ++in_flight[chunk];
        kept += totals_[chunk];
      }
      const long long total = kept + work(chunk, action.kind);
      if (total > most.total)
        most = {in_flight, chunk, action.kind, total};
      if (!forward) {
        --in_flight[chunk];
        kept -= totals_[chunk];
      }
    }
    return most;
  }

  void add_to(MemoryByName& held, const Busiest& most) const {
    for (std::size_t chunk = 0; chunk < kept_.size(); ++chunk)
      held.add(kept_[chunk], most.in_flight[chunk]);
    held.add(most.kind == plan::ActionKind::Forward ? "loss" : "backward of a layer",
             work(most.chunk, most.kind));
  }

 private:
  long long work(std::size_t chunk, plan::ActionKind kind) const {
    return kind == plan::ActionKind::Forward ? loss_[chunk] : backward_[chunk];
  }

  const MegatronRun& run_;
  std::vector<MemoryByName> kept_;
  std::vector<long long> totals_, loss_, backward_;  // bytes per chunk
};

/// Returns the bytes of the newest input gradient and of the buffers for the next messages.
long long message_buffers(const MegatronRun& run) {
  if (run.cut.pipeline == 1)
    return 0;
  return megatron::hidden_state(run) * (run.cut.chunks > 1 ? 3 : 2);
}

/// Returns the mask that the data loader creates: one byte per pair of tokens.
long long attention_mask(const MegatronRun& run) {
  return megatron::tokens_of(run).whole * run.training.sequence;
}

/// Returns the memory of --wgrad-deferral-limit: logit gradients of that many microbatches, and all
/// inputs of the head.
long long deferred_gradients(const MegatronRun& run) {
  if (run.deferred_head_gradients == 0)
    return 0;
  return 2 * run.deferred_head_gradients * megatron::logits_of(run) +
         run.cut.microbatches(run.training.batch) * megatron::hidden_state(run);
}

/// Returns the memory that CUDA graphs of attention, dense layers and routers keep permanently: as
/// much as at the peak.
long long inside_graphs(const MemoryByName& peak) {
  long long inside = 0;
  for (const char* const name : {"norm outputs", "queries, keys, values", "attention outputs",
                                 "statistics of scores", "feed-forward"})
    inside += peak.of(name);
  return inside;
}

void check_run(const MegatronRun& run) {
  const auto refuse = [](const std::string& what) { throw plan::InputError(what); };
  if (run.cut.zero > 1)
    refuse(fmt::format("zero is {}: sharded gradients and weights are not supported; use 0 or 1",
                       run.cut.zero));
  if (run.rank < 0 || run.rank >= run.cut.pipeline)
    refuse(fmt::format("rank {} of a pipeline of {}", run.rank, run.cut.pipeline));
  if (run.training.model.vocabulary < 1)
    refuse("vocab_padded is not given: the head's size has to be known");
}

}  // namespace

void MemoryByName::add(std::string_view name, long long bytes) {
  if (bytes == 0)
    return;
  const auto found = std::find_if(holders_.begin(), holders_.end(),
                                  [&](const Holder& holder) { return holder.name == name; });
  if (found == holders_.end())
    holders_.push_back({std::string(name), {bytes}});
  else
    found->bytes += plan::Bytes{bytes};
}

void MemoryByName::add(const MemoryByName& others, long long times) {
  for (const Holder& holder : others.holders_)
    add(holder.name, holder.bytes.value * times);
}

long long MemoryByName::of(std::string_view name) const {
  for (const Holder& holder : holders_)
    if (holder.name == name)
      return holder.bytes.value;
  return 0;
}

long long MemoryByName::total() const {
  long long sum = 0;
  for (const Holder& holder : holders_)
    sum += holder.bytes.value;
  return sum;
}

MegatronMemory megatron_memory(const MegatronRun& run) {
  check_run(run);
  const auto stages = megatron::rank_stages(run);
  const auto parameters = megatron::rank_parameters(run, stages);
  const long long state = megatron::optimizer_state(run, parameters);
  const long long wide = megatron::wide_gradients(run, parameters);

  MemoryByName standing;
  megatron::add_model(standing, run, parameters);
  standing.add("fp32 weights", megatron::main_weights(run, parameters));
  standing.add("optimizer state", state);
  megatron::add_set_aside(standing, run, stages, parameters);

  MegatronMemory memory{.behind_iteration = standing, .at_peak = standing};
  memory.behind_iteration.add("fp32 gradients", wide);
  memory.behind_iteration.add("stage inputs", megatron::stage_inputs(run, stages));

  const StepWalk walk(run, stages);
  walk.add_to(memory.at_peak, walk.busiest());
  memory.at_peak.add("messages", message_buffers(run));
  memory.at_peak.add("attention mask", attention_mask(run));
  memory.at_peak.add("deferred gradients of the head", deferred_gradients(run));
  const long long first = memory.at_peak.total() - state;
  if (run.keeps_wide_gradients)
    memory.at_peak.add("fp32 gradients", wide);

  if (run.graphs)
    memory.behind_iteration.add("inside graphs", inside_graphs(memory.at_peak));

  const long long behind = memory.behind_iteration.total();
  memory.allocated = {behind};
  if (run.first_step_only || memory.at_peak.total() < behind + of_step) {
    memory.at_peak = memory.behind_iteration;
    memory.at_peak.add("step", of_step);
  }
  memory.peak = {memory.at_peak.total()};
  memory.first_step_peak =
      run.resumed ? memory.peak : plan::Bytes{std::max(first, behind + of_step)};
  if (run.first_step_only)
    memory.peak = memory.first_step_peak;
  return memory;
}

}  // namespace pipewright::models
