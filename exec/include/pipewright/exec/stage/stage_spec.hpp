#pragma once

// The specification of the stages of one rank, taken from a Program: the layers of each, and how
// the backwards of its microbatches are computed. Executor and profiler build stages from it.

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
  int first = 0, last = 0;                         // layers [first, last) of the model
  std::map<int, std::vector<int>> microbatches{};  // of the batch, by gradient group
  int groups_of_pipeline = 1;                      // gradient groups, in all its directions
  std::map<int, BackwardKind> backwards{};         // by microbatch of the pipeline; default: B
  int step_every = 0;                              // as in the Program
  int recompute_layers = 0;                        // as in the Program
  bool selective_recompute = false;                // as in the Program

  // The members below are not part of a Program.
  at::Device device = at::kCPU;
  Shard shard{};                      // of the optimizer's states under ZeRO
  TensorParallelPlace place{};        // the part of each layer that this rank has
  bool captures = false;              // see ExecutorOptions::cuda_graphs
  bool dynamic_shapes = false;        // as in ExecutorOptions
  AccountEntry* account = nullptr;    // charged with the memory that graphs retain
  LayerObserver* observer = nullptr;  // if set, nothing is captured, and each layer has a graph
};

/// Returns the specifications of the stages of `rank`. `groups`: the gradient group of each
/// microbatch of the batch.
std::vector<StageSpec> stage_specs(const plan::Program& program, const plan::Partition& partition,
                                   const JobRank& rank, const std::vector<int>& groups);

}  // namespace pipewright::exec
