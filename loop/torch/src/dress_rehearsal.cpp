#include "pipewright/loop_torch/dress_rehearsal.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::loop {
namespace {

constexpr int warm_up_plays = 1;
constexpr int plays_to_one_alone = 4;

/// Returns the first rank of the job that is rehearsed in this process: its only rank, or rank 0.
int first_here(const Membership& members) { return members.rank().value_or(0); }
int count_here(const plan::Scenario& scenario, const Membership& members) {
  return members.in_job() ? 1 : plan::ranks_of_job(scenario.pipeline);
}

using Benches = std::vector<std::unique_ptr<profiler::LayerBench>>;

profiler::ShardSeat seat_of(const exec::JobRank& rank, const Workload& workload) {
  return {.index = rank.shard, .count = rank.shards, .groups = workload.setup().tensor_groups};
}

Benches benches_of(const plan::Scenario& scenario, const Workload& workload,
                   const Membership& members) {
  const exec::JobGrid grid = grid_of(scenario.pipeline);
  Benches benches;
  for (int at = 0; at < count_here(scenario, members); ++at)
    benches.push_back(std::make_unique<profiler::LayerBench>(
        workload.setup(), workload.device(),
        seat_of(grid.rank(first_here(members) + at), workload)));
  return benches;
}

/// Returns the transport between tensor-parallel ranks, or the job's if there is no tensor
/// parallelism.
std::shared_ptr<exec::Transport> transport_of(const plan::Scenario& scenario,
                                              const Membership& members) {
  if (scenario.pipeline.tensor == 1 || members.in_job())
    return members.transport();
  return exec::make_in_process_transport(plan::ranks_of_job(scenario.pipeline));
}

/// Packs the plays into a tensor of seconds by play and instruction.
at::Tensor tensor_of(const std::vector<std::vector<double>>& plays) {
  const auto length = static_cast<std::int64_t>(plays.front().size());
  at::Tensor rows = at::empty({static_cast<std::int64_t>(plays.size()), length}, at::kDouble);
  double* next = rows.mutable_data_ptr<double>();
  for (const auto& play : plays)
    next = std::copy(play.begin(), play.end(), next);
  return rows;
}

std::vector<std::vector<double>> plays_in(const at::Tensor& rows) {
  std::vector<std::vector<double>> plays;
  for (std::int64_t play = 0; play < rows.size(0); ++play) {
    const double* const seconds = rows.const_data_ptr<double>() + play * rows.size(1);
    plays.emplace_back(seconds, seconds + rows.size(1));
  }
  return plays;
}

/// Packs a rank's times for other processes: the plays with a row each, and the samples with a row
/// each that holds their kind, layer and time.
exec::Tensors tensors_of(const RehearsedRank& rank) {
  std::vector<double> rows;
  for (const bool beside : {false, true}) {
    const auto& samples = beside ? rank.beside : rank.alone;
    for (std::size_t layer = 0; layer < samples.size(); ++layer)
      for (std::size_t kind = 0; kind < profiler::sample_kinds.size(); ++kind)
        for (const double seconds : samples[layer].*profiler::sample_kinds[kind])
          rows.insert(rows.end(), {beside ? 1.0 : 0.0, static_cast<double>(layer),
                                   static_cast<double>(kind), seconds});
  }
  return {tensor_of(rank.plays), at::tensor(rows, at::kDouble).reshape({-1, 4}),
          tensor_of(rank.shards), tensor_of(rank.late)};
}

RehearsedRank rank_of(const exec::Tensors& tensors) {
  RehearsedRank rank{.plays = plays_in(tensors.at(0)),
                     .alone = {},
                     .beside = {},
                     .shards = plays_in(tensors.at(2)),
                     .late = plays_in(tensors.at(3))};
  const auto rows = tensors.at(1).accessor<double, 2>();
  for (std::int64_t row = 0; row < rows.size(0); ++row) {
    auto& samples = rows[row][0] != 0 ? rank.beside : rank.alone;
    const auto layer = static_cast<std::size_t>(rows[row][1]);
    samples.resize(std::max(samples.size(), layer + 1));
    const auto kind = profiler::sample_kinds.at(static_cast<std::size_t>(rows[row][2]));
    (samples[layer].*kind).push_back(rows[row][3]);
  }
  return rank;
}

/// Returns the largest number of ranks that were rehearsed at once on one node, which may exceed
/// its devices.
int most_on_a_node(const plan::Cluster& cluster, int ranks) {
  std::vector<int> on_node(static_cast<std::size_t>(cluster.nodes));
  for (int rank = 0; rank < ranks; ++rank)
    ++on_node[static_cast<std::size_t>(plan::node_of(cluster, rank))];
  return *std::max_element(on_node.begin(), on_node.end());
}

/// Appends the samples of each layer.
void append(std::vector<profiler::LayerSamples>& all,
            const std::vector<profiler::LayerSamples>& more) {
  for (std::size_t layer = 0; layer < more.size(); ++layer)
    all[layer].append(more[layer]);
}

}  // namespace

namespace {

/// Returns the ranks of a data-parallel replica, with only the first rank of each tensor-parallel
/// group.
std::vector<int> ranks_of_pipeline(const exec::JobGrid& grid, int replica) {
  std::vector<int> ranks = grid.first_pipeline();
  for (int rank = 0; rank < grid.size(); ++rank)
    if (const exec::JobRank own = grid.rank(rank); own.replica == replica && own.shard == 0)
      ranks[static_cast<std::size_t>(own.rank)] = rank;
  return ranks;
}

}  // namespace

std::vector<std::vector<double>> plays_of(const Rehearsed& rehearsed,
                                          const plan::Pipeline& pipeline, RehearsedRank::Plays of,
                                          int replica) {
  std::vector<std::vector<double>> plays((rehearsed.ranks.front().*of).size());
  for (const int rank : ranks_of_pipeline(grid_of(pipeline), replica))
    for (std::size_t play = 0; play < plays.size(); ++play) {
      const auto& own = (rehearsed.ranks[static_cast<std::size_t>(rank)].*of)[play];
      plays[play].insert(plays[play].end(), own.begin(), own.end());
    }
  return plays;
}

bool can_rehearse(const plan::Program& program, const Workload& workload) {
  return workload.device().device.is_cpu() && !plan::is_forward_only(program) &&
         // A rehearsal assumes the same shapes at each stage boundary for all microbatches.
         !workload.dynamic_shapes();
}

DressRehearsal::DressRehearsal(const plan::Scenario& scenario, const Plan& plan,
                               const Workload& workload, Membership& members)
    : members_(members),
      job_ranks_(plan::ranks_of_job(scenario.pipeline)),
      transport_(transport_of(scenario, members)),
      benches_(benches_of(scenario, workload, members)),
      cores_(profiler::rank_cores(benches_, first_here(members), job_ranks_)),
      ranks_(benches_.size()) {
  const exec::JobGrid grid = grid_of(scenario.pipeline);
  // The shapes are those that one tensor-parallel rank sees. It may hold only a part of the tokens,
  // and all of them hold equally many.
  const profiler::LayerBench one(workload.setup(), workload.device(),
                                 seat_of(grid.rank(first_here(members)), workload));
  const auto borders = profiler::borders_of(one, plan.partition);
  profiler::RankProgram played{
      plan.program(), plan.partition,
      exec::gradient_groups(plan.program(), workload.setup(), scenario.pipeline.replicas)};
  for (std::size_t at = 0; at < benches_.size(); ++at) {
    played.rank = grid.rank(first_here(members) + static_cast<int>(at));
    job_rank_of_.push_back(played.rank);
    rehearsals_.emplace_back(*benches_[at], played, borders);
  }
  for (int i = 0; i < warm_up_plays; ++i)
    play_together(/*counts=*/false);
}

/// Tensor-parallel ranks wait for each other, so a rank that fails aborts all of them.
void DressRehearsal::play_together(bool counts) {
  cores_.together([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto rehearse = [&] { rehearsals_[at].play(counts ? &ranks_[at].beside : nullptr); };
    profiler::PlayedShards* const shards = benches_[at]->shards();
    if (shards == nullptr) {
      rehearse();
      return;
    }
    shards->meet(*transport_, job_rank_of_[at].of_all_shards(), job_rank_of_[at].in_job());
    try {
      rehearse();
    } catch (const std::exception& failure) {
      transport_->abort(failure.what());
      throw;
    }
    shards->part();
  });
}

/// Waits until all processes are here.
void DressRehearsal::meet() {
  if (members_.job() == nullptr)
    return;
  members_.job()->doing("a rehearsal");
  members_.from_all(std::string());
}

void DressRehearsal::play() {
  if (played_ == 0)
    begin_ = std::chrono::steady_clock::now();
  if (job_ranks_ > 1 && played_ % plays_to_one_alone == 0) {
    meet();
    const int rank = played_ / plays_to_one_alone % job_ranks_ - first_here(members_);
    const auto at = static_cast<std::size_t>(rank);
    if (rank >= 0 && at < ranks_.size())
      cores_.alone(rank, [&] { rehearsals_[at].play(&ranks_[at].alone); });
  }
  meet();
  play_together(/*counts=*/true);
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    ranks_[at].plays.push_back(rehearsals_[at].seconds());
    ranks_[at].shards.push_back(rehearsals_[at].shard_seconds());
    ranks_[at].late.push_back(rehearsals_[at].late_seconds());
  }
  meet();
  ++played_;
  over_ = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
}

Rehearsed DressRehearsal::rehearsed() const {
  if (!members_.in_job())
    return {ranks_, over_};
  const auto theirs = members_.from_all(tensors_of(ranks_.front()));
  if (!members_.is_first())
    return {};
  Rehearsed all{{}, over_};
  for (const exec::Tensors& tensors : theirs)
    all.ranks.push_back(rank_of(tensors));
  return all;
}

plan::LayerCosts costs_of(const Rehearsed& rehearsed, const plan::Scenario& scenario,
                          const Plan& plan, plan::LayerCosts costs) {
  std::vector<profiler::LayerSamples> alone_by_layer(costs.layers.size() + 1);
  std::vector<profiler::LayerSamples> beside_by_layer(costs.layers.size() + 1);
  for (const RehearsedRank& rank : rehearsed.ranks) {
    append(alone_by_layer, rank.alone);
    append(beside_by_layer, rank.beside);
  }
  std::vector<double> sums;
  for (const auto& play : plays_of(rehearsed, scenario.pipeline, &RehearsedRank::plays))
    sums.push_back(std::accumulate(play.begin(), play.end(), 0.0));
  costs.drift = plan::drift(sums);
  costs.busy_cores = most_on_a_node(scenario.cluster, static_cast<int>(rehearsed.ranks.size()));
  costs.measured_over = rehearsed.over;
  for (std::size_t l = 0; l < beside_by_layer.size(); ++l) {
    plan::LayerCost& cost = l < costs.layers.size() ? costs.layers[l] : costs.loss;
    // Costs list selective recomputation separately, so it is taken out of the backward.
    const plan::Seconds again =
        plan.program().selective_recompute ? cost.selective_forward : plan::Seconds{};
    const plan::LayerTimes planned{cost.forward, cost.input_gradient + again, cost.weight_gradient,
                                   cost.splitting, cost.optimizer_step};
    const auto times_of = [&](const profiler::LayerSamples& samples) {
      plan::LayerTimes times = profiler::times_of(samples, planned);
      times.input_gradient = std::max(plan::Seconds{}, times.input_gradient - again);
      return times;
    };
    const plan::LayerTimes together = times_of(beside_by_layer[l]);
    const bool contends = costs.busy_cores > 1;
    // A rank with a node to itself computes alone even while all others compute. A layer that was
    // never rehearsed alone gets the times measured while all ranks computed.
    const plan::LayerTimes alone =
        contends && !alone_by_layer[l].forward.empty() ? times_of(alone_by_layer[l]) : together;
    cost.contended = contends ? together : plan::LayerTimes{};
    static_cast<plan::LayerTimes&>(cost) = alone;
  }
  return costs;
}

namespace {

/// Expert-parallel ranks are rehearsed by one rank that has all of the experts and communicates
/// nothing. So the all-to-all and the extra compute of the busiest rank take their predicted times.
void share_out_experts(const sim::Structure& structure, const sim::StepCosts& costs,
                       const sim::StepCosts& of_all_experts, std::vector<double>& seconds) {
  const auto stages_of = [](const sim::StepCosts& step) {
    return step.contended.empty() ? step.stages : step.contended;
  };
  const auto stages = stages_of(costs), with_all = stages_of(of_all_experts);
  for (int event = 0; event < structure.size(); ++event) {
    const plan::Instruction& i = *structure.events()[event].instruction;
    const plan::Work work = plan::traits_of(i.kind).work;
    const auto stage = static_cast<std::size_t>(i.stage);
    double& own = seconds[static_cast<std::size_t>(event)];
    if (own > 0)
      own = std::max(
          0.0,
          own + (plan::time_of(work, stages[stage]) - plan::time_of(work, with_all[stage])).value);
  }
}

/// A rehearsal reads its data in the load itself. Loads that a background thread reads ahead
/// therefore keep their predicted times.
void leave_out_loads(const sim::Structure& structure, std::vector<double>& seconds) {
  for (int event = 0; event < structure.size(); ++event)
    if (structure.events()[event].instruction->kind == plan::InstructionKind::Load)
      seconds[static_cast<std::size_t>(event)] = 0;
}

}  // namespace

std::vector<sim::StepCosts> step_costs_of(const Rehearsed& rehearsed,
                                          const plan::Scenario& scenario, const Plan& plan,
                                          const plan::LayerCosts& costs) {
  const sim::StepCosts plain = sim::step_costs_of(scenario, costs, plan.partition);
  plan::Scenario whole = scenario;
  whole.pipeline.expert = 1;
  const sim::StepCosts of_all_experts = sim::step_costs_of(whole, costs, plan.partition);
  std::vector<std::vector<double>> all_seconds;  // by play, the pipelines concatenated
  for (int replica = 0; replica < scenario.pipeline.replicas; ++replica) {
    auto plays = plays_of(rehearsed, scenario.pipeline, &RehearsedRank::plays, replica);
    all_seconds.resize(plays.size());
    for (std::size_t play = 0; play < plays.size(); ++play) {
      std::vector<double>& seconds = plays[play];
      if (scenario.pipeline.expert > 1)
        share_out_experts(*plan.structure, plain, of_all_experts, seconds);
      if (scenario.data.read_ahead > 0 && !costs.reads_on_rank)
        leave_out_loads(*plan.structure, seconds);
      all_seconds[play].insert(all_seconds[play].end(), seconds.begin(), seconds.end());
    }
  }
  std::vector<sim::StepCosts> all;
  for (const std::vector<double>& seconds : all_seconds)
    all.push_back(with_measured(*plan.structure, plain, seconds));
  return all;
}

sim::StepCosts with_measured(const sim::Structure& structure, sim::StepCosts costs,
                             const std::vector<double>& seconds) {
  sim::StepCosts bare = costs;  // a rehearsal contains compute only
  for (plan::Link* const link : plan::links_of(bare.cluster))
    link->overheads = {};
  sim::Durations usual;
  usual.fill(structure, bare, bare.contended.empty() ? bare.stages : bare.contended);
  costs.event_factors.assign(seconds.size(), 1.0);
  for (std::size_t at = 0; at < seconds.size(); ++at) {
    const int event = static_cast<int>(at % static_cast<std::size_t>(structure.size()));
    const double known = usual.of(structure, event).held;
    if (seconds[at] > 0 && known > 0)
      costs.event_factors[at] = seconds[at] / known;
  }
  return costs;
}

}  // namespace pipewright::loop
