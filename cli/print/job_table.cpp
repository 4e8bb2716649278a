#include "print/job_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::cli {
namespace {

struct Job {
  Job(const sim::ScenarioPlan& plan, const sim::JobTimes& times)
      : devices(std::ssize(plan.program().ranks) * times.members()),
        instructions(std::int64_t{plan.structure->size()} * times.members()),
        first(*std::min_element(times.ready().begin(), times.ready().end())) {
    const auto slowest = std::max_element(times.ready().begin(), times.ready().end());
    last = *slowest;
    pipeline = (slowest - times.ready().begin()) / plan.costs.shards;
  }

  std::int64_t devices, instructions;
  double first, last = 0;  // when the pipelines have finished their compute
  std::int64_t pipeline = 0;
};

}  // namespace

std::string job_table(const sim::ScenarioPlan& plan, const sim::JobTimes& times) {
  const Job job(plan, times);
  return fmt::format(
      "{} individual devices with {} instructions: {}; pipelines end their compute after {} to {}, "
      "the last is pipeline {}\n",
      job.devices, job.instructions, plan::time_text(times.iteration()), plan::time_text(job.first),
      plan::time_text(job.last), job.pipeline);
}

plan::Json job_json(const sim::ScenarioPlan& plan, const sim::JobTimes& times) {
  const Job job(plan, times);
  return {{"devices", job.devices},           {"instructions", job.instructions},
          {"iteration_s", times.iteration()}, {"first_computed_s", job.first},
          {"last_computed_s", job.last},      {"last_pipeline", job.pipeline}};
}

}  // namespace pipewright::cli
