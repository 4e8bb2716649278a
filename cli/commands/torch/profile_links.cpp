#include <algorithm>

#include "commands/torch/devices.hpp"
#include "commands/torch/job.hpp"
#include "commands/torch/torch_commands.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/loop/record/link_report.hpp"
#include "pipewright/loop_torch/measured_links.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "print/links_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

// Two pairs of processes.
constexpr int least_processes = 4;
// The threads' share of the time, if both are measured: threads pass references, so no bytes move.
constexpr double share_of_threads = 0.2;

loop::LinkSettings settings(const plan::Scenario& scenario, double within_s, ProgressLine& line) {
  return {.limits = {.within = {within_s}},
          .computing_ranks = std::max(2, std::min(plan::ranks_of_job(scenario.pipeline),
                                                  scenario.cluster.devices_per_node)),
          .progress =
              [&line](const char* what, plan::Bytes size) {
                line.show(fmt::format("measuring links: {}, {} bytes", what, size.value));
              },
          .stop = &interrupted()};
}

/// Measures all kinds of links, each over the transport that training would use.
std::vector<loop::MeasuredLink> measured(const ProfileOptions& options,
                                         const plan::Scenario& scenario,
                                         const loop::Membership& members) {
  ProgressLine line;
  std::vector<loop::MeasuredLink> links;
  double left = options.within_s;
  if (members.is_first() && options.between != "processes") {
    if (members.in_job())
      left *= share_of_threads;
    links.push_back(loop::measured_link(loop::links_in_process(
        std::max(2, plan::ranks_of_job(scenario.pipeline)), settings(scenario, left, line))));
    left = options.within_s - left;
  }
  if (!members.in_job())
    return links;
  members.from_first("");  // waits for the first process
  const exec::RankDevice device =
      options.device.on_gpu()
          ? exec::gpu_of_process(exec::job_from_environment().value().local_rank)
          : exec::RankDevice();
  for (const plan::LinkSamples& samples :
       loop::links_of_job(members, options.device.on_gpu() ? "NCCL" : "Gloo", device,
                          settings(scenario, left, line)))
    if (members.is_first())
      links.push_back(loop::measured_link(samples));
  return links;
}

void report(const ProfileOptions& options, const plan::Scenario& scenario,
            const std::vector<loop::MeasuredLink>& links) {
  if (links.empty())
    throw plan::InputError("a single process has no links: start two or more");
  const plan::Cluster cluster = loop::with_links(scenario.cluster, links);
  if (!options.out.empty())
    plan::write_file(options.out, to_json(cluster).dump(2) + "\n");
  if (options.scenario.json) {
    plan::Json json{{"links", plan::Json::array()}, {"cluster", to_json(cluster)}};
    for (const loop::MeasuredLink& link : links)
      json["links"].push_back(to_json(link));
    fmt::print("{}\n", json.dump(2));
    return;
  }
  for (const loop::MeasuredLink& link : links)
    fmt::print("{}\n", links_table(link));
}

/// Returns the number of processes. NCCL needs a GPU for each.
int processes_for(const ProfileOptions& options, const plan::Scenario& scenario) {
  const auto gpus = options.device.on_gpu() ? static_cast<int>(exec::gpus().names.size()) : 0;
  return gpus > 1 ? gpus : std::max(least_processes, plan::ranks_of_job(scenario.pipeline));
}

/// Returns why NCCL cannot be measured; empty: it can, or it was not requested.
std::string why_no_nccl(const ProfileOptions& options, int processes) {
  if (!options.device.on_gpu())
    return "";
  const exec::Gpus& gpus = exec::gpus();
  if (!gpus.why_none.empty())
    return gpus.why_none;
  if (gpus.names.size() == 1 && processes > 1 && !exec::job_from_environment())
    return "this machine has one GPU, but each process needs its own";
  return "";
}

/// Returns the scenario with one rank per process of the job, whatever its own number of ranks.
plan::Scenario as_large_as_the_job(plan::Scenario scenario) {
  if (const auto job = exec::job_from_environment()) {
    scenario.pipeline.ranks = job->size;
    scenario.pipeline.replicas = scenario.pipeline.tensor = scenario.pipeline.context = 1;
  }
  return scenario;
}

}  // namespace

int profile_links(const ProfileOptions& wanted) {
  ProfileOptions options = wanted;
  const auto scenario = read_scenario(options.scenario);
  const auto job = exec::job_from_environment();
  const int processes = job ? job->size : processes_for(options, scenario);
  if (const std::string why = why_no_nccl(options, processes); !why.empty()) {
    if (!job)
      say("links over NCCL are not measured: " + why);
    options.device.device = "cpu";
  }
  if (!job && options.between != "threads")
    return start_as_processes(processes, options.device, options.limits);
  open_log(options.log);
  open_devices(options.device, scenario.training.cpu_branch);
  catch_interrupts();
  loop::Membership members(as_large_as_the_job(scenario),
                           membership_options(options.device, options.limits));
  return code_of_part(members, [&] {
    engine::take_part(members, [&] {
      const auto links = measured(options, scenario, members);
      if (members.is_first())
        report(options, scenario, links);
    });
    return Done;
  });
}

}  // namespace pipewright::cli
