#include "pipewright/search/calibration/unsaid.hpp"

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "support/catch.hpp"

namespace unsaid_test {

using namespace pipewright;

models::MeasuredRun run_of(plan::AttentionKind attention) {
  models::MeasuredRun run;
  auto& model = run.training.model;
  model.layers = 16, model.hidden = 1024, model.heads = model.kv_heads = 16;
  model.head_channels = 64, model.feed_forward = 4096, model.vocabulary = 50304;
  run.training.sequence = 2048, run.training.batch = 16;
  run.training.attention = attention;
  run.cut.pipeline = 4;
  return run;
}

TEST_CASE("Calibration infers the kind of attention of runs from their memory",
          "[sim][calibration]") {
  using enum plan::AttentionKind;
  const plan::Cluster cluster;
  for (const auto attention : {Scores, Fused}) {
    std::vector<models::MeasuredRun> runs{run_of(attention)};
    const double peak = models::peak_of(models::transformer_memory(runs[0].training, runs[0].cut),
                                        models::machine_of(cluster).constants);
    CHECK(search::attention_of(cluster, runs) == Scores);  // nothing was measured
    runs[0].peak_memory = plan::whole_bytes(1.05 * peak);
    runs[0].training.attention = attention == Fused ? Scores : Fused;
    CHECK(search::attention_of(cluster, runs) == attention);

    search::set_attention(runs, attention);
    CHECK(runs[0].training.attention == attention);
    runs[0].tells_attention = true;
    search::set_attention(runs, attention == Fused ? Scores : Fused);
    CHECK(runs[0].training.attention == attention);
  }
}

TEST_CASE("Runs that name schedules have transfers as fast as Zero Bubble measured",
          "[sim][calibration]") {
  const auto hop = [](const plan::Cluster& cluster) {
    return models::machine_of(cluster).constants.transfer_efficiency;
  };
  plan::Cluster cluster;
  const double usual = hop(cluster);
  std::vector<models::MeasuredRun> runs(2);
  CHECK(hop(search::cluster_of(cluster, runs)) == usual);
  runs[1].names_schedule = true;
  CHECK(hop(search::cluster_of(cluster, runs)) == 0.15);
  cluster.machine = models::machine_of(cluster);
  cluster.machine->constants.transfer_efficiency = 0.3;
  CHECK(hop(search::cluster_of(cluster, runs)) == 0.3);
}

}  // namespace unsaid_test
