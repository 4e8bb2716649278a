#include "pipewright/search/calibration/calibration.hpp"

#include <cmath>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/search/calibration/forecast.hpp"
#include "pipewright/search/calibration/prediction_error.hpp"
#include "pipewright/search/calibration/run_simulator.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace calibration_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::models;
using namespace pipewright::search;

Cluster cluster_of(int nodes) {
  Cluster cluster;
  cluster.name = "made up";
  cluster.nodes = nodes;
  cluster.devices_per_node = 8;
  cluster.device.flops_per_s = 312e12;
  cluster.device.memory_bandwidth_per_s = 2039e9;
  cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 300e9};
  cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 200e9};
  return cluster;
}

MeasuredRun run_of(int hidden, int tensor, int data, int pipeline, int microbatch, int microbatches,
                   int layers = 24) {
  MeasuredRun run;
  run.id = std::to_string(hidden) + "/" + std::to_string(tensor) + "/" + std::to_string(data) +
           "/" + std::to_string(pipeline) + "/" + std::to_string(microbatch);
  run.training.attention = AttentionKind::Scores;
  run.training.model.layers = layers, run.training.model.hidden = hidden,
  run.training.model.heads = run.training.model.kv_heads = 16;
  run.training.model.head_channels = hidden / 16, run.training.model.feed_forward = 4 * hidden;
  run.training.model.vocabulary = 50257, run.training.sequence = 1024;
  run.cut.tensor = tensor, run.cut.data = data, run.cut.pipeline = pipeline;
  run.cut.microbatch = microbatch, run.training.batch = microbatch * data * microbatches;
  return run;
}

std::vector<MeasuredRun> many_runs() {
  std::vector<MeasuredRun> runs;
  for (const int hidden : {1024, 2048, 4096})
    for (const int tensor : {1, 2, 4, 8})
      for (const int pipeline : {1, 2, 4})
        for (const int microbatch : {1, 2, 8})
          for (const int microbatches : {4, 16})
            if (tensor * pipeline <= 8)
              runs.push_back(run_of(hidden, tensor, 8 / tensor / pipeline, pipeline, microbatch,
                                    microbatches));
  return runs;
}

TransformerWork work_of(const MeasuredRun& run, const Cluster& cluster,
                        RecomputeMode recompute = RecomputeMode::None) {
  return transformer_work(cluster, run.training, run.cut_if(recompute));
}

Seconds time_of(const MeasuredRun& run, const Cluster& cluster, const TransformerTimes& times) {
  return {RunSimulator(cluster).iteration(run.training, run.cut, times)};
}

/// Sets the times of runs on a machine with these constants.
void measure(std::vector<MeasuredRun>& runs, const Cluster& cluster,
             const MachineConstants& constants, RecomputeMode recompute = RecomputeMode::None) {
  for (MeasuredRun& run : runs)
    run.iteration =
        time_of(run, cluster, transformer_times(work_of(run, cluster, recompute), constants));
}

/// Returns constants that differ from the defaults.
MachineConstants other_constants() {
  MachineConstants constants;
  constants.gemm_efficiency = 0.78;
  constants.memory_efficiency = 0.5;
  constants.layer_launch_s = 3.5e-3;
  constants.collective_call_s = 350e-6;
  constants.stage_launch_s = 2.2e-3;
  constants.wide_tensor_launch_s = 1.1e-3;
  return constants;
}

double mean_error(const Calibration& calibration, const std::vector<MeasuredRun>& runs,
                  bool physics = false) {
  const auto predicted = predict_runs(calibration, runs);
  std::vector<RunError> errors;
  for (std::size_t at = 0; at < runs.size(); ++at)
    errors.push_back({&runs[at], physics ? predicted[at].physics_s : predicted[at].iteration_s,
                      runs[at].iteration->value});
  return error_of(errors).mean;
}

TEST_CASE("Calibration recovers the constants from which synthetic runs were computed",
          "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  const MachineConstants truth = other_constants();
  measure(runs, cluster, truth);
  const Calibration calibration = calibrate(cluster, runs);
  const MachineConstants& found = calibration.physics;
  CHECK(found.gemm_efficiency == Approx(truth.gemm_efficiency).epsilon(0.03));
  CHECK(found.memory_efficiency == Approx(truth.memory_efficiency).epsilon(0.03));
  CHECK(found.layer_launch_s == Approx(truth.layer_launch_s).epsilon(0.01));
  CHECK(found.collective_call_s == Approx(truth.collective_call_s).epsilon(0.05));
  CHECK(found.stage_launch_s == Approx(truth.stage_launch_s).epsilon(0.1));
  CHECK(found.wide_tensor_launch_s == Approx(truth.wide_tensor_launch_s).epsilon(0.05));
  CHECK(mean_error(calibration, runs) < 0.002);
}

TEST_CASE("Ten runs are enough to predict others within a few per cent", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> all = many_runs(), ten;
  measure(all, cluster, other_constants());
  for (std::size_t at = 3; ten.size() < 10; at += all.size() / 10)
    ten.push_back(all[at % all.size()]);
  CHECK(mean_error(calibrate(cluster, ten), all) < 0.06);
}

TEST_CASE("Constants on which no run depends stay unchanged", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs{run_of(2048, 1, 1, 1, 4, 4), run_of(2048, 1, 2, 1, 8, 4)};
  measure(runs, cluster, other_constants());
  for (const FittedConstant& constant : calibrate(cluster, runs).constants) {
    CAPTURE(constant.key);
    if (constant.key == "tensor_launch_s" || constant.key == "transfer_efficiency" ||
        constant.key == "network_efficiency") {
      CHECK_FALSE(constant.matters);
      CHECK(constant.value == Approx(constant.prior));
    }
    CHECK(constant.deviation > 0);
  }
}

TEST_CASE("Bounds hold: no machine is faster than its data sheet", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  measure(runs, cluster, other_constants());
  for (MeasuredRun& run : runs)
    run.iteration->value /= 10;
  const Calibration calibration = calibrate(cluster, runs);
  CHECK(calibration.physics.gemm_efficiency <= 1);
  CHECK(calibration.physics.memory_efficiency <= 1);
}

TEST_CASE("Calibration learns factors by class for layers slower than the physical model",
          "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  for (MeasuredRun& run : runs) {  // each class at its own speed
    const int mixed =
        (run.training.model.hidden / 1024 * 7 + run.cut.tensor * 5 + run.cut.microbatch * 3) % 11;
    const LayerFactors factors{.layer = 0.9 + 0.02 * mixed};
    run.iteration = time_of(run, cluster, transformer_times(work_of(run, cluster), {}, factors));
  }
  std::vector<MeasuredRun> learnt, others;
  for (std::size_t at = 0; at < runs.size(); ++at)
    (at % 2 == 0 ? learnt : others).push_back(runs[at]);
  const Calibration calibration = calibrate(cluster, learnt);
  CHECK(calibration.class_spread > 0);
  CHECK(mean_error(calibration, others) < 0.005);
  CHECK(mean_error(calibration, others, true) > 0.02);
}

TEST_CASE("An unmeasured class is predicted by the physical model", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  measure(runs, cluster, other_constants());
  const Calibration calibration = calibrate(cluster, runs);
  const auto predicted = predict_runs(calibration, {run_of(3072, 1, 8, 1, 4, 4)});
  CHECK_FALSE(predicted.front().class_known);
  CHECK(predicted.front().iteration_s == predicted.front().physics_s);
}

TEST_CASE("Calibration infers from the times whether runs recompute", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  for (const RecomputeMode recompute : {RecomputeMode::None, RecomputeMode::Full}) {
    measure(runs, cluster, {}, recompute);
    CHECK(calibrate(cluster, runs).within_node == recompute);
  }
}

TEST_CASE("One outlier does not change the fit", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  measure(runs, cluster, other_constants());
  std::vector<MeasuredRun> wild = runs;
  wild[5].iteration->value *= 3;
  CHECK(mean_error(calibrate(cluster, wild), runs) < 0.01);
}

TEST_CASE("Runs that do not fit the cluster are rejected", "[sim][calibration]") {
  std::vector<MeasuredRun> runs{run_of(2048, 8, 2, 1, 4, 4)};
  runs.front().id = "r1", runs.front().iteration = Seconds{1};
  CHECK(pipewright::test::error_of([&] { calibrate(cluster_of(1), runs); }) ==
        "run r1 has 16 GPUs, but the cluster has one node of 8: it needs \"nodes\" and "
        "\"between_nodes\"");
  Cluster bare = cluster_of(1);
  bare.device.flops_per_s = 0;
  CHECK(pipewright::test::error_of([&] { calibrate(bare, runs); }) ==
        "the cluster's device.flops_per_s is not known: times need the peak");
}

TEST_CASE(
    "With equal stages, the simulated iteration takes (M + P - 1) stages and the work at its end",
    "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  MachineConstants constants;
  constants.transfer_efficiency = 1e9;  // transfers take no time
  constants.stage_launch_s = 1e-12;
  constants.iteration_s = 0.01;
  for (const int pipeline : {1, 2, 4})
    for (const int microbatches : {4, 16}) {
      MeasuredRun run = run_of(2048, 1, 1, pipeline, 4, microbatches);
      TransformerWork work = work_of(run, cluster);
      work.head_s = work.head_bytes_s = work.embedding_s = 0;
      const TransformerTimes times = transformer_times(work, constants);
      const double stage = (times.layer.forward + times.layer.backward) * 24 / pipeline;
      const double end = pipeline == 1 ? times.only_end_s : times.first_end_s;
      CAPTURE(pipeline, microbatches);
      CHECK(time_of(run, cluster, times).value ==
            Approx((microbatches + pipeline - 1) * stage + end + 0.01).epsilon(1e-6));
    }
}

TEST_CASE("A slow last stage sets the rate of the others", "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  MachineConstants constants;
  constants.transfer_efficiency = 1e9;
  const MeasuredRun run = run_of(2048, 1, 1, 4, 4, 16);
  const TransformerWork work = work_of(run, cluster);
  const TransformerTimes times = transformer_times(work, constants);
  const auto whole = [](const PassSeconds& pass) { return pass.forward + pass.backward; };
  const double stage = 6 * whole(times.layer);
  const double all = 4 * stage + whole(times.embedding) + whole(times.head);
  const double slowest = stage + whole(times.head);
  CHECK(time_of(run, cluster, times).value ==
        Approx(all + 15 * slowest + times.first_end_s + constants.iteration_s).epsilon(1e-6));
}

TEST_CASE("Calibration infers the uncounted working memory from the memory peaks",
          "[sim][calibration]") {
  const Cluster cluster = cluster_of(1);
  std::vector<MeasuredRun> runs = many_runs();
  measure(runs, cluster, {});
  MachineConstants truth;
  truth.token_bytes = 15, truth.logit_bytes = 6;
  for (MeasuredRun& run : runs)
    run.peak_memory = whole_bytes(peak_of(transformer_memory(run.training, run.cut), truth));
  const Calibration calibration = calibrate(cluster, runs);
  const auto predicted = forecast(calibration, runs);
  for (std::size_t at = 0; at < runs.size(); ++at)
    CHECK(predicted[at].ranks[predicted[at].read].peak_bytes ==
          Approx(static_cast<double>(runs[at].peak_memory->value)).epsilon(0.01));
}

TEST_CASE("Errors: mean, median, ninth tenth, regret and ranks", "[sim][calibration]") {
  std::vector<MeasuredRun> runs(5, run_of(2048, 1, 1, 1, 4, 4));
  const std::vector<double> measured{10, 11, 12, 13, 14}, predicted{11, 10, 12, 13, 21};
  std::vector<RunError> errors;
  for (std::size_t at = 0; at < runs.size(); ++at)
    errors.push_back({&runs[at], predicted[at], measured[at]});
  const PredictionError error = error_of(errors);
  CHECK(error.rows == 5);
  CHECK(error.mean == Approx((0.1 + 1.0 / 11 + 0.5) / 5));
  CHECK(error.median == Approx(1.0 / 11));
  CHECK(error.worst == Approx(0.5));
  CHECK(error.groups == 1);
  CHECK(*error.regret == Approx(0.1));  // the second is chosen, the first is best
  CHECK(*error.spearman == Approx(0.9));
  CHECK_FALSE(error_of({errors.begin(), errors.begin() + 3}).regret);
  CHECK(error_of({}).rows == 0);
}

double error_across_halves(const std::string& table, bool physics) {
  const auto runs = read_runs(pipewright::test::reference_file(table), RunTimes::Needed).runs;
  const auto cluster = cluster_from_json(JsonDocument::read(
      std::filesystem::path(PIPEWRIGHT_SOURCE_DIR) / "scenarios" / "clusters" / "a100-80gb.json"));
  std::vector<RunError> errors;
  for (const auto& predicted : forecast_across_halves(cluster, runs, 3))
    for (std::size_t at = 0; at < runs.size(); ++at)
      errors.push_back({&runs[at],
                        physics ? predicted[at].time->physics_s : predicted[at].time->iteration_s,
                        runs[at].iteration->value});
  return error_of(errors).mean;
}

TEST_CASE(
    "vTrain's runs on one node: one half predicts the other within 4 %, with classes within 0.25 %",
    "[sim][calibration][reference]") {
  const auto physics = error_across_halves("papers/vtrain_single_node.csv", true);
  const auto classes = error_across_halves("papers/vtrain_single_node.csv", false);
  CHECK(physics < 0.04);
  CHECK(classes < 0.0025);
}

TEST_CASE("vTrain's runs on several nodes: one half predicts the other within 5.5 %",
          "[sim][calibration][reference]") {
  CHECK(error_across_halves("papers/vtrain_multi_node.csv", false) < 0.055);
}

}  // namespace calibration_test
