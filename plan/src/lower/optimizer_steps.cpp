#include "pipewright/plan/lower.hpp"

namespace pipewright::plan {

Program with_optimizer_steps(Program program) {
  for (int stage = 0; stage < stage_count(program); ++stage) {
    const int rank = program.rank_of_stage[static_cast<std::size_t>(stage)];
    program.ranks[static_cast<std::size_t>(rank)].push_back(
        {InstructionKind::OptimizerStep, stage});
  }
  return program;
}

}  // namespace pipewright::plan
