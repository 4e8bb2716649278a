#include "pipewright/models/transformer/transformer_times.hpp"

#include <cmath>

#include "pipewright/plan/model/known_transformers.hpp"
#include "support/catch.hpp"

namespace transformer_times_test {

using namespace pipewright::plan;
using namespace pipewright::models;

Cluster a100() {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.devices_per_node = 8;
  cluster.device.flops_per_s = 312e12;
  cluster.device.memory_bandwidth_per_s = 2039e9;
  cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 300e9};
  cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 200e9};
  return cluster;
}

struct Run {
  TransformerTraining training;
  Cut cut;
};

Run run_of(int tensor, int data, int pipeline, int microbatch) {
  Run run;
  run.training.attention = AttentionKind::Scores;
  run.training.model.layers = 24, run.training.model.hidden = 4096,
  run.training.model.heads = run.training.model.kv_heads = 32,
  run.training.model.head_channels = 128;
  run.training.model.feed_forward = 4 * 4096, run.training.model.vocabulary = 51200,
  run.training.sequence = 2048;
  run.cut.tensor = tensor, run.cut.data = data, run.cut.pipeline = pipeline;
  run.cut.microbatch = microbatch, run.training.batch = 8 * data * microbatch;
  return run;
}

TransformerWork work_of(const Run& run, const Cluster& cluster = a100()) {
  return transformer_work(cluster, run.training, run.cut);
}

TransformerTimes times(Run run, RecomputeMode recompute = RecomputeMode::None,
                       const MachineConstants& constants = {}) {
  run.cut.recompute = recompute;
  return transformer_times(work_of(run), constants);
}

double whole(const PassSeconds& pass) { return pass.forward + pass.backward; }

TEST_CASE("Transfers and all-reduces across a further network level use its bandwidth",
          "[plan][transformer]") {
  Cluster cluster = a100();
  cluster.nodes = 8;
  // Stages of two nodes, so that their transfers stay within a group of four nodes, and stages of
  // four nodes, whose transfers do not.
  const Run near = run_of(8, 2, 4, 1), far = run_of(8, 4, 2, 1);
  const TransformerWork near_alone = work_of(near, cluster), far_alone = work_of(far, cluster);
  cluster.fabric = {
      .levels = {{.name = "spine",
                  .group_nodes = 4,
                  .link = {.latency = {1e-5}, .bandwidth_per_s = 200e9, .oversubscription = 4}}}};
  CHECK(work_of(near, cluster).network_hop_s == near_alone.network_hop_s);
  CHECK(work_of(far, cluster).network_hop_s == 4 * far_alone.network_hop_s);
  const GroupPlace two{.devices = 2, .spans = true, .level = 1};
  const GroupPlace groups{.devices = 2, .spans = true, .level = 2};
  CHECK(sum_time(cluster, groups, 1e9).network_s == 4 * sum_time(cluster, two, 1e9).network_s);
}

TransformerConfig latent(int query_rank) {
  TransformerConfig model = find_transformer("deepseekv2").value();
  model.q_rank = query_rank;
  return model;
}

TEST_CASE("Latent attention without a query rank projects queries from the hidden state",
          "[plan][transformer]") {
  Run run = run_of(1, 8, 4, 1);
  run.training.model = latent(0);
  const double whole_queries = times(run).layer.forward;
  run.training.model = latent(1536);
  const double low_rank = times(run).layer.forward;
  run.training.model = latent(1);
  const double nearly_none = times(run).layer.forward;
  CHECK(std::isfinite(whole_queries));
  CHECK(whole_queries > low_rank);
  CHECK(low_rank > nearly_none);
}

TEST_CASE("A width of 0 has no time, and no size gives a time that is not finite",
          "[plan][transformer]") {
  const auto finite_without = [](int TransformerConfig::*size) {
    Run run = run_of(1, 8, 4, 1);
    run.training.model = latent(1536);
    run.training.model.*size = 0;
    return times(run);  // throws if a time is not finite
  };
  using Config = TransformerConfig;
  for (int Config::*const size :
       {&Config::feed_forward, &Config::expert_feed_forward, &Config::shared_feed_forward,
        &Config::q_rank, &Config::rope_channels})
    CHECK(finite_without(size).layer.forward > 0);
  Cluster slow = a100();
  slow.device.flops_per_s = 1e-300;
  CHECK_THROWS_WITH(transformer_times(work_of(run_of(1, 1, 1, 1), slow), {}),
                    Catch::Matchers::Contains("the time of a layer is "));
}

TEST_CASE("Large layers take the time of their products, small ones the host's time",
          "[plan][transformer]") {
  MachineConstants constants;
  constants.gemm_efficiency = 1, constants.gemm_saturation = 1e-9;
  constants.memory_efficiency = 1;
  constants.overlap_power = 20;
  constants.layer_launch_s = 1e-6;
  Run run = run_of(1, 1, 1, 8);
  run.training.attention = AttentionKind::Fused;
  // 72 b s h² FLOP, the scores' 12 b s² h at half the rate, and 3 × 14 passes over 2 b s h bytes.
  const double tokens = 8.0 * 2048, h = 4096;
  CHECK(whole(times(run, RecomputeMode::None, constants).layer) ==
        Approx(72 * tokens * h * h / 312e12 + 12 * tokens * 2048 * h / 156e12 +
               3 * 14 * 2 * tokens * h / 2039e9)
            .epsilon(1e-6));
  constants.layer_launch_s = 1;
  CHECK(whole(times(run, RecomputeMode::None, constants).layer) == Approx(1).epsilon(1e-3));
}

TEST_CASE("Full recomputation adds a forward, selective recomputation the attention core",
          "[plan][transformer]") {
  const Run run = run_of(8, 1, 1, 8);
  const double none = times(run).layer.backward;
  const double selective = times(run, RecomputeMode::Selective).layer.backward;
  const double full = times(run, RecomputeMode::Full).layer.backward;
  CHECK(none < selective);
  CHECK(selective < full);
  CHECK(full / none == Approx(1.5).epsilon(0.1));
}

TEST_CASE("A partitioned layer is faster, but pays for its all-reduces", "[plan][transformer]") {
  const double one = whole(times(run_of(1, 1, 1, 8)).layer);
  const double four = whole(times(run_of(4, 1, 1, 8)).layer);
  CHECK(four < one / 2);
  CHECK(four > one / 4);
}

TEST_CASE("Heads and microbatches that do not fit vectors cost launches", "[plan][transformer]") {
  Run fits = run_of(8, 1, 1, 1), odd = fits;
  odd.training.model.heads = odd.training.model.kv_heads = 16;  // two per device, of 256 channels
  odd.training.model.head_channels = 256;
  CHECK_FALSE(work_of(fits).odd_scores);
  CHECK(work_of(odd).odd_scores);
  fits.training.model.head_channels = 64;
  CHECK(work_of(fits).narrow_heads);
}

TEST_CASE("The first and the last stage end later than those in between", "[plan][transformer]") {
  const TransformerTimes ends = times(run_of(1, 2, 4, 1));
  CHECK(ends.first_end_s > ends.middle_end_s);
  CHECK(ends.last_end_s > ends.middle_end_s);
  CHECK(ends.only_end_s > ends.first_end_s);
}

TEST_CASE("All-reduces within a node follow the table, with logarithmic interpolation",
          "[plan][transformer]") {
  Cluster cluster = a100();
  cluster.machine.emplace().reductions = {
      .ranks = {2, 2}, .bytes = {1 << 20, 1 << 24}, .seconds = {1e-4, 1e-3}};
  Run run = run_of(2, 1, 1, 1);
  const auto sum = [&](int hidden) {
    run.training.model.hidden = hidden;  // 2 bytes × 2048 tokens × hidden
    return work_of(run, cluster).sum.table_s;
  };
  CHECK(sum(256) == Approx(1e-4));
  CHECK(sum(4096) == Approx(1e-3));
  CHECK(sum(1024) == Approx(std::sqrt(1e-4 * 1e-3)));
  CHECK(sum(128) == Approx(1e-4));  // no smaller than the smallest
}

TEST_CASE("All-reduces across nodes use the network", "[plan][transformer]") {
  const TransformerWork within = work_of(run_of(8, 1, 1, 1));
  const TransformerWork across = work_of(run_of(16, 1, 1, 1));
  CHECK(within.sum.network_s == 0);
  CHECK(across.sum.table_s == 0);
  CHECK(across.sum.network_s == Approx(2 * 15.0 / 16 * 2 * 2048 * 4096 / 200e9));
  CHECK(across.sum.steps_s == 0);  // over a tree
}

/// 64 replicas of a layer, or a few, on 8 nodes, whose gradient reductions overlap with backwards.
Run overlapping() {
  Run run = run_of(1, 64, 1, 1);
  run.cut.zero = 1;
  run.cut.overlaps_gradients = run.cut.overlaps_parameters = true;
  return run;
}

TEST_CASE("Each bucket of gradients takes a ring's steps, and nothing overlaps the last one",
          "[plan][transformer]") {
  Run run = overlapping();
  const StageEndWork whole_sum = [&] {
    Run alone = run;
    alone.cut.overlaps_gradients = false;
    return work_of(alone).only_end;
  }();
  const StageEndWork end = work_of(run).only_end;
  CHECK(end.sum.network_s == Approx(whole_sum.sum.network_s));
  CHECK(whole_sum.sum.steps_s == 0);
  // A ring of 8 nodes: twice around 56 links within nodes and 7 between them.
  const double ring = 2 * (56 * 5e-6 + 7 * 1e-5);
  // Buckets of 64 million each: the head, three per layer (67, 67 and 50 + 17), the embedding.
  CHECK(end.sum.steps_s == Approx(1.9 * (1 + 24 * 3 + 1) * ring));
  const double embedding = 4096.0 * 51200;
  CHECK(end.alone == Approx(embedding / (24 * (12 * 4096.0 + 13) * 4096 + 2 * embedding)));
}

TEST_CASE("8-bit parameters are gathered in half of the time, except for the ring's steps",
          "[plan][transformer]") {
  Run run = overlapping();
  const MachineConstants constants;
  const StageEndWork end = work_of(run).only_end;
  CHECK(gathering_s(work_of(run), end, constants) == scattering_s(end, constants));
  run.training.gathers_float8 = true;
  const double steps = end.sum.steps_s / 2;
  CHECK(gathering_s(work_of(run), end, constants) - steps ==
        Approx((scattering_s(end, constants) - steps) / 2));
  run.cut.zero = 0;  // whole gradients are gathered
  CHECK(work_of(run).gathered == 1);
}

TEST_CASE("Products in 8 bits cast their inputs", "[plan][transformer]") {
  Run run = run_of(2, 1, 1, 1);
  const double wide = work_of(run).layer.element_bytes_s;
  run.training.precision = ProductPrecision::Float8;
  // Inputs of h, h, h / 2 and 4 h / 2; gradients of 3 h / 2, h, 4 h / 2 and h: 5 bytes each.
  const double elements = 2048.0 * 4096 * (2 + 0.5 + 2 + 1.5 + 1 + 2 + 1);
  CHECK(work_of(run).layer.element_bytes_s - wide == Approx(5 * elements / 3 / 2039e9));
}

TEST_CASE("Only products of fewer bits than 16 have a separate efficiency", "[plan][transformer]") {
  Run run = run_of(1, 1, 1, 8);
  run.training.attention = AttentionKind::Fused;
  MachineConstants plain, quick;
  plain.layer_launch_s = quick.layer_launch_s = 1e-9;
  plain.memory_efficiency = quick.memory_efficiency = 1e9;
  plain.core_efficiency = quick.core_efficiency = 1e9;
  quick.low_precision_efficiency = 2;
  const auto layer = [&](const MachineConstants& constants) {
    return whole(times(run, RecomputeMode::None, constants).layer);
  };
  CHECK(layer(quick) == layer(plain));
  run.training.precision = ProductPrecision::Float8;
  CHECK(layer(quick) == Approx(layer(plain) / 2));
}

TEST_CASE("The remaining launch time after replaying is between kernels", "[plan][transformer]") {
  Run run = run_of(1, 1, 1, 8);
  MachineConstants constants;
  constants.layer_launch_s = 1e-9;
  run.training.replays_launches = true;
  const double kernels = whole(times(run, RecomputeMode::None, constants).layer);
  constants.layer_launch_s = 1e-2;
  CHECK(whole(times(run, RecomputeMode::None, constants).layer) ==
        Approx(kernels + 0.05 * 1e-2).epsilon(1e-6));
}

TEST_CASE("Deterministic attention uses a separate kernel on fast devices", "[plan][transformer]") {
  Cluster quick = a100();
  quick.device.flops_per_s = 2250e12;
  Run run = run_of(1, 1, 1, 1);
  run.training.attention = AttentionKind::Fused;
  const auto core = [&](const Cluster& cluster, bool repeats) {
    run.training.repeats_bits = repeats;
    return transformer_times(work_of(run, cluster), {}).layer.core;
  };
  CHECK(core(a100(), true) == core(a100(), false));
  CHECK(core(quick, true) > 2 * core(quick, false));
}

TEST_CASE("Transfers wait only for other pipelines of a node whose stages span more than two nodes",
          "[plan][transformer]") {
  const auto waits = [](int tensor, int data) {
    return work_of(run_of(tensor, data, 4, 1)).uplink_s;
  };
  CHECK(waits(8, 8) == 0);  // one pipeline in a node
  CHECK(waits(4, 4) == 0);  // two nodes in a stage
  CHECK(waits(4, 8) > 0);
  CHECK(waits(2, 16) == Approx(3 * waits(4, 8)));
}

TEST_CASE("Factors of a measured class change only its layers", "[plan][transformer]") {
  const auto work = work_of(run_of(2, 1, 2, 1));
  const auto plain = transformer_times(work, {});
  const auto other = transformer_times(work, {}, {.layer = 2, .embedding = 1, .head = 3});
  CHECK(whole(other.layer) == Approx(2 * whole(plain.layer)));
  CHECK(whole(other.head) == Approx(3 * whole(plain.head)));
  CHECK(whole(other.embedding) == whole(plain.embedding));
  CHECK(other.first_end_s == plain.first_end_s);
}

}  // namespace transformer_times_test
