#include "pipewright/plan/generators/evaluation_program.hpp"

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {

Program evaluation_program(const Program& trained, int microbatches, int replicas) {
  ScheduleRequest request;
  request.name = "inference";
  request.ranks = static_cast<int>(trained.ranks.size());
  request.microbatches = microbatches;
  request.rank_of_stage = trained.placement.routes.front();
  LoweringOptions options;
  options.share_loss = true;
  options.replicas = replicas;
  options.zero = gathers_parameters(trained) ? 3 : 0;
  return lower(make_schedule(request), options);
}

}  // namespace pipewright::plan
