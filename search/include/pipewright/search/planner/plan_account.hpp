#pragma once

// A plan, explained: what its layers take, and what each rank computes and holds.

#include <vector>

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

struct RankAccount {
  std::vector<int> stages;
  int layers = 0;
  double busy_s = 0;  // of the iteration: compute, and what ends it
  // Bytes of a device.
  double standing = 0;  // parameters, gradients, optimizer
  double kept = 0;      // activations of all microbatches in flight
  double at_work = 0;   // the rest, at the peak
  double total() const { return standing + kept + at_work; }
};

struct PlanAccount {
  models::TransformerTimes times;
  std::vector<RankAccount> ranks;
};

PlanAccount account_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                       const plan::Cut& cut);

}  // namespace pipewright::search
