#pragma once

// What a Program makes of the stages of one of its ranks: which layers each has, and how the
// backwards of its microbatches are computed. Whoever trains a Program or measures it builds stages
// from this.

#include <c10/core/Device.h>

#include <compare>
#include <map>
#include <vector>

#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/exec/training/optimizer.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

struct AccountEntry;
class LayerObserver;

/// How a Program computes the backward of a microbatch.
struct BackwardKind {
  bool recomputed = false;  // a Recompute builds the graph
  bool split = false;       // I and W instead of B
  friend auto operator<=>(const BackwardKind&, const BackwardKind&) = default;
};

struct StageSpec {
  int index = 0;
  int rank = 0;                                    // of the job
  int first = 0, last = 0;                         // layers of the model
  std::map<int, std::vector<int>> microbatches{};  // of the batch, by gradient group
  int groups_of_pipeline = 1;                      // gradient groups, in all its directions
  std::map<int, BackwardKind> backwards{};         // by microbatch of the pipeline; none: B
  int step_every = 0;                              // as in the Program
  int recompute_layers = 0;                        // likewise
  bool selective_recompute = false;                // likewise

  // What a Program does not say.
  at::Device device = at::kCPU;
  Shard shard{};                      // of the optimizer's states; the Program says what else
  ShardPlace place{};                 // which part of its layers it has
  bool captures = false;              // see ExecutorOptions::cuda_graphs
  bool dynamic_shapes = false;        // as in ExecutorOptions
  AccountEntry* account = nullptr;    // what graphs keep is charged to it
  LayerObserver* observer = nullptr;  // with one, nothing is captured, and each layer has a graph
};

/// What the stages that `rank` holds are made from. `groups`: the gradient group of each microbatch
/// of the batch.
std::vector<StageSpec> stage_specs(const plan::Program& program, const plan::Partition& partition,
                                   const JobRank& rank, const std::vector<int>& groups);

}  // namespace pipewright::exec
