#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {

Program with_gathers(Program program, int replicas) {
  if (is_forward_only(program))
    return program;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const int stage : program.placement.stages_on(static_cast<int>(rank)))
      if (replicas > 1 || program.placement.ranks_of(stage).size() > 1)
        program.ranks[rank].push_back({InstructionKind::GatherParameters, stage});
  return program;
}

}  // namespace pipewright::plan
