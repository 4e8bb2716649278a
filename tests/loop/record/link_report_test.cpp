#include "pipewright/loop/record/link_report.hpp"

#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace link_report_test {

using namespace pipewright;
using namespace pipewright::loop;

constexpr double latency = 5e-5, bandwidth = 2e9;

/// Returns samples from 64 bytes to 16 MiB.
plan::LinkSeries series(double slow_down, double rounds = 1, double part = 1) {
  plan::LinkSeries found;
  for (std::int64_t bytes = 64; bytes <= 1 << 24; bytes *= 4)
    found.samples.push_back(
        {.size = {bytes},
         .time = {slow_down * rounds * (latency + part * static_cast<double>(bytes) / bandwidth)},
         .repeats = 1});
  return found;
}

/// Returns the samples of one pair, and of two concurrent pairs that take `two_pairs` times as
/// long.
plan::LinkSamples samples(double two_pairs) {
  return {.over = "Gloo",
          .between_nodes = false,
          .one_way = series(1),
          .both_ways = series(1.5),
          .at_once = {series(two_pairs)},
          // Each step takes 3 times as long.
          .sums = {series(3, 2, 1.0 / 2), series(3, 4, 1.0 / 3)},
          .tensor_parallel_sums = {series(5, 2, 1.0 / 2), series(5, 4, 1.0 / 3)}};
}

TEST_CASE(
    "A measured link has latency and bandwidth of transfers, and separate ones of all-reduces",
    "[loop][links]") {
  const plan::Link link = measured_link(samples(1)).link;
  CHECK(link.latency.value == Approx(latency));
  CHECK(link.bandwidth_per_s == Approx(bandwidth));
  CHECK(link.collective_latency.value == Approx(3 * latency));
  CHECK(link.collective_bandwidth_per_s == Approx(bandwidth / 3));
  CHECK(link.tensor_parallel_latency.value == Approx(5 * latency));
  CHECK(link.tensor_parallel_bandwidth_per_s == Approx(bandwidth / 5));
}

TEST_CASE(
    "The overlap of a tensor-parallel all-reduce is the part that adds no compute time, and 0 if "
    "not measured",
    "[loop][links]") {
  plan::LinkSamples with = samples(1);
  CHECK(measured_link(with).link.tensor_parallel_overlap == 0);
  CHECK_FALSE(to_json(measured_link(with)).contains("tensor_parallel_sums_during_compute"));
  with.tensor_parallel_sums_during_compute = series(1, 2, 1.0 / 2);  // a fifth of an all-reduce
  CHECK(measured_link(with).link.tensor_parallel_overlap == Approx(0.8));
  CHECK(to_json(measured_link(with)).at("tensor_parallel_sums_during_compute").at("overlap") ==
        measured_link(with).link.tensor_parallel_overlap);
  with.tensor_parallel_sums_during_compute = series(6, 2, 1.0 / 2);  // takes longer than alone
  CHECK(measured_link(with).link.tensor_parallel_overlap == 0);
}

TEST_CASE("A link measured while ranks compute has the times and overheads from then",
          "[loop][links]") {
  plan::LinkSamples with = samples(1);
  with.computing = {series(2), series(0.5, 1, 0.5), series(0.25, 1, 0), series(0.5, 2, 1.0 / 2)};
  const MeasuredLink measured = measured_link(with);
  const plan::Link& link = measured.link;
  CHECK(link.latency.value == Approx(2 * latency));
  CHECK(link.bandwidth_per_s == Approx(bandwidth / 2));
  CHECK(link.overheads.send.each.value == Approx(latency / 2));
  CHECK(link.overheads.send.bandwidth_per_s == Approx(4 * bandwidth));
  CHECK(link.overheads.receive.each.value == Approx(latency / 4));
  CHECK(link.overheads.receive.bandwidth_per_s == 0);
  CHECK(link.collective_latency.value == Approx(3 * latency));
  CHECK(link.overheads.sum.each.value == Approx(latency / 2));
  CHECK(link.overheads.sum.bandwidth_per_s == Approx(2 * bandwidth));
  CHECK(measured.fit.link.latency.value == Approx(latency));
  const plan::Json computing = to_json(measured).at("computing");
  CHECK(computing.at("arrival").at("fit").at("latency_s") == link.latency.value);
  CHECK(computing.at("sender").at("samples").size() == 10);
  CHECK(computing.at("receiver").at("samples").at(9).at("bytes") == 1 << 24);
}

TEST_CASE("Pairs that slow each other down share their link", "[loop][links]") {
  const MeasuredLink apart = measured_link(samples(1.3));
  CHECK_FALSE(apart.link.shared);
  CHECK(apart.sharing.at(0).pairs == 2);
  CHECK(apart.sharing.at(0).slow_down == Approx(1.3));
  CHECK(measured_link(samples(1.9)).link.shared);
  CHECK(measured_link(samples(1.9)).both_ways.value() == Approx(1.5));
}

TEST_CASE("Pairs of more processes than the training has do not decide whether a link is shared",
          "[loop][links]") {
  plan::LinkSamples three = samples(1.3);
  three.at_once.push_back(series(2.9));
  CHECK(measured_link(three).link.shared);
  three.most_pairs = 2;
  CHECK_FALSE(measured_link(three).link.shared);
  three.at_once[0] = series(1.9);
  CHECK(measured_link(three).link.shared);
  three.most_pairs = 1;
  CHECK_FALSE(measured_link(three).link.shared);
  CHECK(measured_link(three).sharing.size() == 2);
}

TEST_CASE("On a slow link small transfers show whether it is shared", "[loop][links]") {
  plan::LinkSamples slow = samples(1.9);
  for (plan::LinkSeries* const each : {&slow.one_way, &slow.both_ways, &slow.at_once[0]}) {
    each->samples.resize(7);  // up to 256 KiB
    CHECK_FALSE(measured_link(slow).link.shared);
  }
  const auto slower = [](plan::LinkSeries& each) {
    for (plan::LinkSample& sample : each.samples)
      sample.time += plan::Seconds{static_cast<double>(sample.size.value) / 5e6};
  };
  slower(slow.one_way);
  slower(slow.at_once[0]);
  slower(slow.at_once[0]);
  CHECK(measured_link(slow).link.shared);
  CHECK(measured_link(slow).sharing.at(0).slow_down == Approx(2).epsilon(0.05));
}

TEST_CASE("The cluster gets the measured kinds of links and keeps the others", "[loop][links]") {
  plan::Cluster cluster;
  cluster.name = "mine";
  cluster.nodes = 2;
  cluster.between_nodes.bandwidth_per_s = 7;
  const MeasuredLink within = measured_link(samples(1));
  CHECK(with_links(cluster, {within}).within_node == within.link);
  CHECK(with_links(cluster, {within}).between_nodes == cluster.between_nodes);
  auto apart = samples(1);
  apart.between_nodes = true;
  CHECK(with_links(cluster, {measured_link(apart)}).between_nodes == within.link);
  CHECK(with_links(cluster, {}).name == "mine");
  cluster.nodes = 1;
  CHECK(with_links(cluster, {within}).nodes == 1);
  CHECK(with_links(cluster, {measured_link(apart)}).nodes == 2);
}

TEST_CASE("The report contains every sample with its residual", "[loop][links]") {
  const plan::Json json = to_json(measured_link(samples(1.9)));
  CHECK(json.at("one_way").at("samples").size() == 10);
  CHECK(json.at("one_way").at("samples").at(9).at("bytes") == 1 << 24);
  CHECK(json.at("sums").at(1).at("ranks") == 3);
  CHECK(std::abs(json.at("sums").at(1).at("samples").at(9).at("residual").get<double>()) < 1e-6);
  CHECK(json.at("fit").at("worst_residual").get<double>() < 1e-6);
  CHECK(json.at("shared") == true);
}

TEST_CASE("A link with too few samples is rejected", "[loop][links]") {
  plan::LinkSamples few;
  few.one_way.samples = {{{1}, {1e-5}}};
  CHECK(test::error_of([&] { measured_link(few); }) ==
        "transfers of 1 sizes are too few to fit a link: at least 3 are needed");
}

}  // namespace link_report_test
