#include "pipewright/search/planner/plan_files.hpp"

#include <fmt/format.h>

#include "pipewright/models/transformer/stage_layers.hpp"
#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::search {
plan::Scenario scenario_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                           const plan::Cut& cut) {
  const std::string& name = training.model.name;
  plan::Scenario scenario;
  scenario.name = fmt::format("{}-tp{}-pp{}-dp{}", name.empty() ? "plan" : name, cut.tensor,
                              cut.pipeline, cut.data);
  scenario.model = plan::shape_of(training);
  scenario.data = {.kind = std::string(plan::tokens_data.name), .path = "tokens.bin"};
  scenario.cluster = cluster;
  scenario.cluster.machine = models::machine_of(cluster);
  plan::Pipeline& pipeline = scenario.pipeline;
  pipeline.ranks = cut.pipeline;
  pipeline.microbatches = cut.microbatches(training.batch);
  pipeline.schedule = schedule_name(cut);
  pipeline.chunks = cut.chunks;
  pipeline.partition = models::boundaries_of(cut, training.model.layers);
  pipeline.blocking = true;  // a transfer occupies both ends, as Megatron's do
  pipeline.replicas = cut.data;
  pipeline.tensor = cut.tensor;
  pipeline.sequence_parallel = cut.sequence_parallel;
  pipeline.context = cut.context;
  pipeline.expert = cut.expert;
  // ZeRO 2 and 3 reduce the gradients of each microbatch.
  pipeline.overlap_reductions = cut.zero >= 2 || cut.overlaps_gradients;
  plan::Training& trained = scenario.training;
  trained.microbatch_size = cut.microbatch;
  trained.precision = plan::Precision::Mixed;
  trained.fp32_gradients = true;
  trained.zero = cut.zero;
  trained.recompute = cut.recompute;
  return scenario;
}

}  // namespace pipewright::search
