#include "pipewright/search/drafts/draft_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partitioners/layout.hpp"

namespace pipewright::search {
namespace {

/// Throws unless stages are placed like Megatron's virtual pipelines: stage s of P ranks is on rank
/// s mod P.
void require_megatron_placement(const plan::Placement& placement, int ranks) {
  if (placement.is_bidirectional())
    throw plan::InputError(
        "the schedule sends microbatches through the ranks in both directions, but Megatron's "
        "layouts have one direction");
  const std::vector<int> in_turn = plan::loop_placement(ranks, placement.stage_count());
  for (int stage = 0; stage < placement.stage_count(); ++stage) {
    const int rank = placement.rank_of(stage, 0);
    const int wanted = in_turn[static_cast<std::size_t>(stage)];
    if (rank != wanted)
      throw plan::InputError(
          fmt::format("stage {} is on rank {}, but Megatron assigns stages to ranks in turn "
                      "and would place it on rank {}: use megatron-interleaved, for example",
                      stage, rank, wanted));
  }
}

}  // namespace

std::string scenario_text(const Draft& draft) {
  plan::Scenario scenario = draft.scenario;
  if (!scenario.data.path.empty())
    scenario.data.path = std::filesystem::absolute(scenario.data.path).lexically_normal();
  return to_json(scenario).dump(2) + "\n";
}

Draft with_boundaries(Draft draft, const sim::ScenarioPlan& plan) {
  draft.scenario.pipeline.partition = plan.partition.boundaries;
  return draft;
}

std::string schedule_csv(const sim::ScenarioPlan& plan) { return plan::to_csv(plan.schedule); }

std::string layout_text(const Draft& draft, const sim::ScenarioPlan& plan) {
  const plan::Model model = model_of(draft.scenario);
  if (!plan::find_layout_letters(model))
    throw plan::InputError(
        fmt::format("Megatron's layouts are for GPT models, not for {}", model.name));
  require_megatron_placement(plan.program().placement, draft.scenario.pipeline.ranks);
  return to_string(plan::layout_of(model, plan.partition.boundaries));
}

}  // namespace pipewright::search
