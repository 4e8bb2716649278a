#include "pipewright/plan/generators/evaluation_program.hpp"

#include <algorithm>
#include <set>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {
namespace {

/// Makes a schedule along the first route, on which all ranks lie.
Schedule along_route(const Program& trained, int microbatches) {
  ScheduleRequest request;
  request.name = "inference";
  request.ranks = static_cast<int>(trained.ranks.size());
  request.microbatches = microbatches;
  request.rank_of_stage = trained.placement.routes.front();
  return make_schedule(request);
}

/// Makes a schedule in which each microbatch takes the same route as in training.
Schedule along_routes(const Program& trained, int microbatches) {
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  schedule.ranks.resize(trained.ranks.size());
  for (int m = 0; m < microbatches; ++m)
    for (int stage = 0; stage < stage_count(trained); ++stage)
      schedule.ranks[static_cast<std::size_t>(trained.placement.rank_of(stage, m))].push_back(
          {ActionKind::Forward, stage, m});
  return schedule;
}

}  // namespace

Program evaluation_program(const Program& trained, int microbatches, int replicas,
                           bool share_loss) {
  const std::vector<int>& route = trained.placement.routes.front();
  const bool lie_on_it = std::set<int>(route.begin(), route.end()).size() == trained.ranks.size();
  LoweringOptions options;
  options.share_loss = share_loss;
  options.replicas = replicas;
  options.zero = gathers_parameters(trained) ? 3 : 0;
  return lower(lie_on_it ? along_route(trained, microbatches) : along_routes(trained, microbatches),
               options);
}

}  // namespace pipewright::plan
