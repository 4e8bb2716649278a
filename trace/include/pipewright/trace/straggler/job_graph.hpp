#pragma once

// What waits for what in one step of a whole training: every replica has the same pipeline, each
// operation begins when all that it waits for has ended, and the members of a group (the two ends
// of a transfer, all copies of a stage in a collective) begin together. As Lin et al. replay it.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/trace/straggler/job_trace.hpp"

namespace pipewright::trace {

/// A gather or a scatter in the queue of a worker's.
struct QueuedCollective {
  JobOperation operation = JobOperation::Gather;
  int chunk = 0;
  friend bool operator==(const QueuedCollective&, const QueuedCollective&) = default;
};

/// What the workers of a stage do beside their computes.
struct WorkerShape {
  std::array<int, job_operation_count> count{};  // of transfers and of what ends a step
  std::vector<QueuedCollective> queue;           // gathers and scatters in their order
};

/// A step without its times: `schedule` has a list for each stage of the pipeline, its actions' own
/// stage is `chunk × stages + stage` unless `rank_of_stage` places them otherwise.
struct JobPlan {
  JobLayout layout;
  plan::Schedule schedule;
  std::vector<WorkerShape> shapes;   // by stage of the pipeline
  std::vector<int> rank_of_stage{};  // by stage of the model; empty: in turn
};

struct JobNode {
  JobOperation operation = JobOperation::Forward;
  int worker = 0;
  int chunk = 0;        // of computes, gathers and scatters
  int index = 0;        // the how-manieth of its operation on the worker
  int microbatch = -1;  // of computes and transfers
};

using NodeNumber = std::uint32_t;

/// Groups stand in an order in which each comes after all that its members wait for.
struct JobGraph {
  std::vector<JobNode> nodes;  // replica by replica, each with the same in the same order
  std::vector<std::uint32_t> wait_begins, group_begins;  // one more than nodes, than groups
  std::vector<NodeNumber> waits, members;
  std::vector<NodeNumber> last;  // with the end of the latest of these the step ends

  std::size_t groups() const { return group_begins.size() - 1; }
  std::span<const NodeNumber> waits_of(NodeNumber node) const {
    return std::span(waits).subspan(wait_begins[node], wait_begins[node + 1] - wait_begins[node]);
  }
  std::span<const NodeNumber> group(std::size_t at) const {
    return std::span(members).subspan(group_begins[at], group_begins[at + 1] - group_begins[at]);
  }
};

/// How many transfers of the operation a worker of the stage has, where each compute that has
/// somebody to send to or to receive from has one.
int transfers_with_partner(const JobPlan& plan, int stage, JobOperation operation);
/// How many computes of a direction it has.
int computes_of(const JobPlan& plan, int stage, Direction direction);
/// Gives each compute that has a partner its transfer, and no other.
void set_transfers(JobPlan& plan);

/// `joined`: nodes that begin together beside those that always do. Throws InputError that names
/// stage and operation where numbers of transfers fit no computes, and what stands in a circle.
JobGraph make_job_graph(const JobPlan& plan,
                        const std::vector<std::pair<NodeNumber, NodeNumber>>& joined = {});

}  // namespace pipewright::trace
