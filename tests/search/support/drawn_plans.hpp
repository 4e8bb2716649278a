#pragma once

// Trainings of public models on the clusters of scenarios/clusters whose nodes are equal, sampled
// for properties over the plans that the planner writes.

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/search/planner/plan_search.hpp"

namespace pipewright::test {

inline const std::vector<plan::Cluster>& scenario_clusters() {
  static const std::vector<plan::Cluster> all = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters"))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<plan::Cluster> read;
    for (const auto& file : files)
      if (auto cluster = plan::cluster_from_json(plan::JsonDocument::read(file)); !cluster.mixture)
        read.push_back(std::move(cluster));
    return read;
  }();
  return all;
}

/// A training of a public model on some cluster, and the part of its space to search.
struct DrawnSpace {
  plan::Cluster cluster;
  search::PlanSpace space;
};

class PlanDraw {
 public:
  explicit PlanDraw(unsigned seed) : random_(seed) {}

  DrawnSpace next() {
    DrawnSpace drawn{.cluster = one_of(scenario_clusters()), .space = {}};
    drawn.cluster.nodes = 128;
    drawn.cluster.device.memory = {};  // plans that are too large must agree as well
    search::PlanSpace& space = drawn.space;
    space.training.model = *plan::find_transformer(one_of(plan::known_transformers()));
    space.training.sequence = one_of<int>({512, 1024, 2048, 4096});
    if (const int longest = space.training.model.longest; longest > 0)
      space.training.sequence = std::min(space.training.sequence, longest);
    space.training.batch = one_of<int>({16, 32, 64, 96});
    space.training.attention =
        one_of<plan::AttentionKind>({plan::AttentionKind::Scores, plan::AttentionKind::Fused});
    space.gpus = one_of<int>({8, 16, 32, 64, 128});
    space.tensor = {one_of<int>({1, 2, 4, 8})};
    space.pipeline = {one_of<int>({1, 2, 4, 8})};
    space.context = {one_of<int>({1, 1, 2})};
    space.zero = {one_of<int>({0, 1, 2, 3})};
    space.recompute = {one_of<plan::RecomputeMode>(
        {plan::RecomputeMode::None, plan::RecomputeMode::Selective, plan::RecomputeMode::Full})};
    space.schedules = {one_of(models::planned_schedules())};
    return drawn;
  }

  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[random_() % values.size()];
  }

 private:
  std::mt19937 random_;
};

}  // namespace pipewright::test
