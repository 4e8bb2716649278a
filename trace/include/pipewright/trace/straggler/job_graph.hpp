#pragma once

// Dependencies within one step of a whole training. Every replica has the same pipeline, each
// operation begins when all its predecessors have ended, and the members of a group (the two ends
// of a transfer, all replicas of a stage in a collective) begin together. This is the replay of Lin
// et al.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/trace/straggler/job_trace.hpp"

namespace pipewright::trace {

/// A gather or scatter in a worker's queue of collectives.
struct QueuedCollective {
  JobOperation operation = JobOperation::Gather;
  int chunk = 0;
  friend bool operator==(const QueuedCollective&, const QueuedCollective&) = default;
};

/// The operations of a stage's workers other than their computes.
struct WorkerShape {
  std::array<int, job_operation_count> count{};  // of transfers and of the operations that end a
                                                 // step
  std::vector<QueuedCollective> queue;           // gathers and scatters in order
};

/// A step without its times. `schedule` has a list for each stage of the pipeline; the stage in its
/// actions is `chunk × stages + stage` unless `rank_of_stage` places stages differently.
struct JobPlan {
  JobLayout layout;
  plan::Schedule schedule;
  std::vector<WorkerShape> shapes;   // by pipeline stage
  std::vector<int> rank_of_stage{};  // by model stage; empty: round-robin
};

struct JobNode {
  JobOperation operation = JobOperation::Forward;
  int worker = 0;
  int chunk = 0;        // only for computes, gathers and scatters
  int index = 0;        // ordinal among the worker's operations of this kind
  int microbatch = -1;  // only for computes and transfers
};

using NodeNumber = std::uint32_t;

/// Groups are in topological order: each comes after all predecessors of its members.
struct JobGraph {
  std::vector<JobNode> nodes;  // replica by replica, in the same order in each
  std::vector<std::uint32_t> wait_begins, group_begins;  // offsets, with one extra entry at the end
  std::vector<NodeNumber> waits, members;
  std::vector<NodeNumber> last;  // the step ends with the latest of these

  std::size_t groups() const { return group_begins.size() - 1; }
  std::span<const NodeNumber> waits_of(NodeNumber node) const {
    return std::span(waits).subspan(wait_begins[node], wait_begins[node + 1] - wait_begins[node]);
  }
  std::span<const NodeNumber> group(std::size_t at) const {
    return std::span(members).subspan(group_begins[at], group_begins[at + 1] - group_begins[at]);
  }
};

/// Returns how many transfers of this kind a worker of the stage has if each compute with a
/// communication partner has one.
int transfers_with_partner(const JobPlan& plan, int stage, JobOperation operation);
/// Returns the number of the stage's computes in this direction.
int computes_of(const JobPlan& plan, int stage, Direction direction);
/// Gives one transfer to each compute that has a partner, and none to the others.
void set_transfers(JobPlan& plan);

/// Builds the graph. `joined` are additional pairs of nodes that begin together. Throws InputError
/// that names stage and operation if the number of transfers does not match the computes, or if
/// there is a cycle.
JobGraph make_job_graph(const JobPlan& plan,
                        const std::vector<std::pair<NodeNumber, NodeNumber>>& joined = {});

}  // namespace pipewright::trace
