#pragma once

// A plan, explained: what its layers take, and what each rank computes.

#include <vector>

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

struct RankAccount {
  std::vector<int> stages;
  int layers = 0;
  double busy_s = 0;  // of the iteration: compute, and what ends it
};

struct PlanAccount {
  models::TransformerTimes times;
  std::vector<RankAccount> ranks;
};

PlanAccount account_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                       const plan::Cut& cut);

}  // namespace pipewright::search
