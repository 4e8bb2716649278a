#include "pipewright/search/drafts/replan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::search {
namespace {

constexpr std::string_view step_prefix = "step_";

void require_rank(int rank, int ranks, const char* option) {
  if (rank < 0 || rank >= ranks)
    throw plan::InputError(
        fmt::format("{} {}: the job's ranks are 0 to {}", option, rank, ranks - 1));
}

/// Returns by rank of the job the layers of its stages.
std::vector<std::vector<int>> layers_of_ranks(const Draft& draft) {
  Draft with_unlimited_memory = draft;
  with_unlimited_memory.scenario.cluster =
      plan::with_unlimited_memory(with_unlimited_memory.scenario.cluster);
  const sim::ScenarioPlan plan =
      sim::lay_out(with_unlimited_memory.scenario, costs_of(with_unlimited_memory));
  const plan::Pipeline& pipeline = draft.scenario.pipeline;
  const plan::Topology places = topology_of(pipeline);
  std::vector<std::vector<int>> layers;
  for (int rank = 0; rank < plan::ranks_of_job(pipeline); ++rank) {
    auto& own = layers.emplace_back();
    for (const int stage : plan.program().placement.stages_on(places.coordinate_of(rank, "pipe")))
      for (int layer = plan.partition.boundaries[static_cast<std::size_t>(stage)];
           layer < plan.partition.boundaries[static_cast<std::size_t>(stage) + 1]; ++layer)
        own.push_back(layer);
    std::sort(own.begin(), own.end());
  }
  return layers;
}

/// Returns the bytes of each layer that a rank needs to continue training.
std::vector<plan::Bytes> bytes_of_layers(const Draft& draft) {
  const plan::LayerCosts costs = costs_of(draft);
  std::vector<int> each;
  for (int border = 0; border <= static_cast<int>(costs.layers.size()); ++border)
    each.push_back(border);
  plan::TrainingMemory training = training_memory(draft.scenario);
  training.shards = 1;
  std::vector<plan::Bytes> bytes;
  for (const plan::StageCost& layer : stage_costs(costs, {each}, training))
    bytes.push_back(layer.parameters + layer.optimizer_state);
  return bytes;
}

/// Parses a folder name: "step_00000040" is 40.
std::optional<int> step_of(const std::string& name) {
  int step = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(step_prefix))
    return {};
  const auto [read, error] = std::from_chars(name.data() + step_prefix.size(), end, step);
  return error == std::errc() && read == end ? std::optional(step) : std::nullopt;
}

plan::Bytes bytes_in(const std::filesystem::path& folder) {
  plan::Bytes bytes{};
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file())
      bytes.value += static_cast<std::int64_t>(entry.file_size());
  return bytes;
}

}  // namespace

DevicesLeft devices_left(const plan::Scenario& scenario, const DeviceTrouble& trouble) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const int ranks = plan::ranks_of_job(pipeline);
  const auto is_lost = [&](int rank) {
    return std::find(trouble.lost.begin(), trouble.lost.end(), rank) != trouble.lost.end();
  };
  for (const int rank : trouble.lost)
    require_rank(rank, ranks, "--lost");
  const plan::Topology places = topology_of(pipeline);
  std::vector<double> speeds;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& known = scenario.cluster.rank_speeds;
    const double own =
        known.empty() ? 1 : known[static_cast<std::size_t>(places.coordinate_of(rank, "pipe"))];
    speeds.push_back(own * plan::kind_speed(scenario.cluster, rank));
  }
  for (const auto& [rank, speed] : trouble.slow) {
    require_rank(rank, ranks, "--slow");
    if (is_lost(rank))
      throw plan::InputError(
          fmt::format("rank {} is given as both lost and slow: choose one", rank));
    if (!(speed > 0 && speed <= 1))
      throw plan::InputError(fmt::format(
          "--slow {}={}: the relative speed must be above 0 and at most 1", rank, speed));
    speeds[static_cast<std::size_t>(rank)] *= speed;
  }
  DevicesLeft left;
  for (int rank = 0; rank < ranks; ++rank)
    if (!is_lost(rank)) {
      left.ranks.push_back(rank);
      left.speeds.push_back(speeds[static_cast<std::size_t>(rank)]);
    }
  if (left.ranks.empty())
    throw plan::InputError("every rank is lost: no device is left to plan for");
  return left;
}

std::vector<RankMove> moves_to(const Draft& before, const DraftPlan& after,
                               const DevicesLeft& left) {
  const auto held = layers_of_ranks(before), wanted = layers_of_ranks(after.draft);
  const std::vector<plan::Bytes> bytes = bytes_of_layers(after.draft);
  std::vector<RankMove> moves;
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    RankMove& move = moves.emplace_back();
    move.rank = static_cast<int>(rank);
    move.was = left.ranks[static_cast<std::size_t>(after.devices[rank])];
    const auto& had = held[static_cast<std::size_t>(move.was)];
    for (const int layer : wanted[rank])
      if (!std::binary_search(had.begin(), had.end(), layer)) {
        move.layers.push_back(layer);
        move.bytes += bytes[static_cast<std::size_t>(layer)];
      }
  }
  return moves;
}

std::optional<StoredStep> newest_step(const std::filesystem::path& checkpoints) {
  std::optional<StoredStep> newest;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
      const auto step = step_of(entry.path().filename().string());
      if (step && (!newest || *step > newest->step) &&
          std::filesystem::exists(entry.path() / "manifest.json"))
        newest = StoredStep{entry.path(), *step, {}};
    }
    if (newest)
      newest->bytes = bytes_in(newest->folder);
  } catch (const std::filesystem::filesystem_error& error) {
    throw plan::InputError(
        fmt::format("{}: cannot be read: {}", checkpoints.string(), error.code().message()));
  }
  return newest;
}

}  // namespace pipewright::search
