#pragma once

// Explains a plan: the times of its layers, and the compute of each rank.

#include <vector>

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

struct RankAccount {
  std::vector<int> stages;
  int layers = 0;
  double busy_s = 0;  // per iteration: its compute, and the end of the iteration
};

struct PlanAccount {
  models::TransformerTimes times;
  std::vector<RankAccount> ranks;
};

PlanAccount account_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                       const plan::Cut& cut);

}  // namespace pipewright::search
