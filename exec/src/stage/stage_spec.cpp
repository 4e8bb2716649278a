#include "pipewright/exec/stage/stage_spec.hpp"

#include <algorithm>
#include <set>

namespace pipewright::exec {

using plan::InstructionKind;

std::vector<StageSpec> stage_specs(const plan::Program& program, const plan::Partition& partition,
                                   const JobRank& rank, const std::vector<int>& groups) {
  std::map<int, std::map<int, BackwardKind>> backwards;
  std::set<int> scattered, gathered;
  for (const plan::Instruction& i : program.ranks[static_cast<std::size_t>(rank.rank)]) {
    if (i.kind == InstructionKind::Recompute)
      backwards[i.stage][i.microbatch].recomputed = true;
    if (i.kind == InstructionKind::InputGradient)
      backwards[i.stage][i.microbatch].split = true;
    if (i.kind == InstructionKind::ScatterMicrobatch)
      scattered.insert(i.stage);
    if (i.kind == InstructionKind::Unshard)
      gathered.insert(i.stage);
  }
  const int groups_of_pipeline =
      (*std::max_element(groups.begin(), groups.end()) + 1) / rank.replicas;
  std::vector<StageSpec> specs;
  for (const int index : program.placement.stages_on(rank.rank)) {
    const auto at = static_cast<std::size_t>(index);
    StageSpec& spec = specs.emplace_back();
    spec.index = index;
    spec.rank = rank.in_job();
    spec.first = partition.boundaries[at];
    spec.last = partition.boundaries[at + 1];
    spec.groups_of_pipeline = groups_of_pipeline;
    spec.backwards = backwards[index];
    spec.step_every = program.step_every;
    spec.recompute_layers = program.recompute_layers;
    spec.selective_recompute = program.selective_recompute;
    spec.shard.gradients = scattered.contains(index);
    spec.shard.parameters = gathered.contains(index);
    for (int m = 0; m < program.microbatches; ++m)
      if (program.placement.rank_of(index, m) == rank.rank) {
        const int microbatch = rank.replica * program.microbatches + m;
        spec.microbatches[groups[static_cast<std::size_t>(microbatch)]].push_back(microbatch);
      }
  }
  return specs;
}

}  // namespace pipewright::exec
