#include "pipewright/search/calibration/run_simulator.hpp"

#include "support/catch.hpp"

namespace run_simulator_test {

using namespace pipewright;

struct Run {
  plan::TransformerTraining training;
  plan::Cut cut;
};

/// Returns a run with one layer per stage.
Run run_of(const std::string& schedule, int ranks, int microbatches, int chunks = 1) {
  Run run;
  run.training.model.layers = ranks * chunks;
  run.training.batch = microbatches;
  run.cut.pipeline = ranks, run.cut.chunks = chunks, run.cut.schedule = schedule;
  return run;
}

/// Returns times of a layer: forward f, input gradient b and weight gradient w.
models::TransformerTimes times_of(double f, double b, double w, double hop = 0) {
  models::TransformerTimes times;
  times.layer = {.forward = f, .backward = b + w, .weight = w};
  times.stage_transfer_s = hop;
  times.hop_size = plan::Bytes{1'000'000'000};
  return times;
}

plan::Cluster one_node() {
  plan::Cluster cluster;
  cluster.devices_per_node = 64;
  return cluster;
}

TEST_CASE("An iteration follows the schedule's closed form", "[sim][calibration]") {
  const plan::Cluster cluster = one_node();
  search::RunSimulator simulator(cluster);
  const double f = 5, b = 4, w = 3;
  const auto times = times_of(f, b, w);
  for (const int p : {2, 4, 8})
    for (const int m : {8, 16, 24}) {
      CAPTURE(p, m);
      const auto iteration = [&](const std::string& schedule, int chunks = 1) {
        const Run run = run_of(schedule, p, m, chunks);
        return simulator.iteration(run.training, run.cut, times);
      };
      const auto span = [&](const std::string& schedule) {
        const Run run = run_of(schedule, p, m);
        return simulator.span(run.training, run.cut, times);
      };
      CHECK(iteration("1f1b") == Approx((m + p - 1) * (f + b + w)));
      CHECK(iteration("gpipe") == Approx((m + p - 1) * (f + b + w)));
      CHECK(iteration("interleaved-1f1b", 2) == Approx((2 * m + p - 1) * (f + b + w)));
      // Zero Bubble, arXiv 2401.10241, Table 2: the span of a rank.
      CHECK(span("zb-h1") == Approx(m * (f + b + w) + (p - 1) * (f + b - w)));
      if (m < 2 * p)
        continue;
      CHECK(span("zb-h2") == Approx(m * (f + b + w) + (p - 1) * (f + b - 2 * w)));
      CHECK(span("zb-h2") < iteration("zb-h2"));
      CHECK(span("zb-2p") <= span("zb-h2") * (1 + 1e-12));
    }
}

TEST_CASE("Stages of several chunks wait for their transfers where transfers block both ends",
          "[sim][calibration]") {
  const plan::Cluster cluster = one_node();
  search::RunSimulator simulator(cluster);
  Run run = run_of("interleaved-1f1b", 4, 8, 2);
  const auto times = times_of(1, 1, 1, 0.25);
  const double overlapped = simulator.iteration(run.training, run.cut, times);
  run.cut.holds_both_ends = true;
  const double held = simulator.iteration(run.training, run.cut, times);
  CHECK(overlapped < held);
  run.cut.holds_both_ends = false;  // uses its own structure
  CHECK(simulator.iteration(run.training, run.cut, times) == overlapped);
}

TEST_CASE("An order that depends on times is that of its own run, whatever was simulated before",
          "[sim][calibration]") {
  const plan::Cluster cluster = one_node();
  const Run run = run_of("zb-2p", 4, 8);
  Run other = run;
  other.training.model.feed_forward = 64;
  const auto times = times_of(5, 4, 3), slow_weights = times_of(1, 1, 9);
  search::RunSimulator asked(cluster), fresh(cluster);
  asked.iteration(other.training, other.cut, slow_weights);
  const double iteration = fresh.iteration(run.training, run.cut, times);
  CHECK(asked.iteration(run.training, run.cut, times) == iteration);
}

}  // namespace run_simulator_test
