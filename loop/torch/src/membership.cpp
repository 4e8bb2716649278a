#include "pipewright/loop_torch/membership.hpp"

#include <fmt/format.h>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::loop {
exec::JobGrid grid_of(const plan::Pipeline& pipeline) {
  return {pipeline.ranks, pipeline.replicas, pipeline.tensor, pipeline.axes, pipeline.expert};
}

Membership::Membership(const plan::Scenario& scenario, const MembershipOptions& wanted) {
  const auto environment = exec::job_from_environment();
  if (!environment)
    return;
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  if (environment->size != ranks)
    throw plan::InputError(fmt::format(
        "{} has started {} processes, but the scenario has {} ranks (pipeline.ranks {} x "
        "pipeline.replicas {}{})",
        environment->launcher, environment->size, ranks, scenario.pipeline.ranks,
        scenario.pipeline.replicas,
        scenario.pipeline.tensor > 1
            ? fmt::format(" x pipeline.tensor {}", scenario.pipeline.tensor)
            : ""));
  engine::MemberOptions options{
      .on_gpu = wanted.on_gpu,
      .transfers = {
          .communicators = scenario.pipeline.communicators,
          .wait_until_taken = scenario.pipeline.blocking &&
                              scenario.pipeline.transfers == plan::TransferMode::Rendezvous}};
  options.job.timeout = wanted.timeout;
  options.job.stall = wanted.stall;
  if (wanted.give_up)
    options.job.when_stuck = [this, give_up = wanted.give_up](const std::string& why) {
      give_up(job()->reports_failure() ? why : "");
    };
  join(*environment, options);
}

}  // namespace pipewright::loop
