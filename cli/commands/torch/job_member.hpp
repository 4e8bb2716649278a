#pragma once

// What commands that train as a job have in common: how its processes come to one plan, and end.

#include <chrono>
#include <functional>
#include <string>

#include "options/torch_options.hpp"
#include "pipewright/exec/job/agreement.hpp"
#include "pipewright/loop/plan.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::cli {

std::chrono::milliseconds milliseconds_of(double seconds);
loop::MembershipOptions membership_options(const DeviceOptions& device, const Patience& patience);

/// Of the ranks in this process. Sets how ranks hand over: apart from each other they copy.
loop::Workload workload_of(plan::Scenario& scenario, const DeviceOptions& device,
                           loop::Membership& members);

/// Costs from `file`, or measured by one process for all when there is none.
plan::LayerCosts common_costs(const plan::Scenario& scenario, const loop::Workload& workload,
                              const std::string& file, const loop::Membership& members);

/// Whether an option was given, for `require_one_plan`.
std::string given(bool is_given);

/// On stderr, where ranks had clocks of their own: how well they are known.
void say_clocks(const loop::MeasuredTimeline& measured);

/// Compares what all ranks must have in common; `options`: those that make ranks talk to each
/// other. Nothing without a job. Throws InputError that names what differs.
void require_one_plan(loop::Membership& members, const plan::Scenario& scenario,
                      const loop::Plan& plan, const loop::Workload& workload,
                      const DeviceOptions& device, const exec::Facts& options);

/// Runs a member's part of a job and gives the exit code. What it throws ends the others as well,
/// and one process prints why. Without a job it is the caller's to catch.
int with_job_report(loop::Membership& members, const std::function<int()>& part);

/// Runs `part` alone, as a member of the job that a launcher started, or as one process per rank
/// that are started here (`processes`); gives the exit code.
using Part = std::function<int(const plan::Scenario& scenario, loop::Membership& members)>;
int as_job(const plan::Scenario& scenario, bool processes, const DeviceOptions& device,
           const Patience& patience, const Part& part);

}  // namespace pipewright::cli
