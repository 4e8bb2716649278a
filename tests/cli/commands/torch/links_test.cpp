// Tests `profile --links` through the command line. The measurements depend on the machine; the
// assertions do not.

#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/support/program.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace links_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using test::small_gpt;
using test::TempFolder;

std::vector<std::string> links(const std::vector<std::string>& more) {
  std::vector<std::string> options{"--links", "--within", "1"};
  options.insert(options.end(), more.begin(), more.end());
  return small_gpt("profile", options);
}

TEST_CASE("profile --links measures threads and processes and writes a cluster for scenarios",
          "[cli][links]") {
  const TempFolder folder;
  const auto file = (folder.path() / "cluster.json").string();
  const auto result = run_program(links({"--json", "-o", file}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto report = json::parse(result.out);
  REQUIRE(report.at("links").size() == 2);
  CHECK(report.at("links").at(0).at("over") == "in process");
  const auto& gloo = report.at("links").at(1);
  CHECK(gloo.at("over") == "Gloo");
  CHECK(gloo.at("one_way").at("samples").size() >= 3);
  CHECK(gloo.at("at_once").size() == 1);  // two pairs, although two ranks train
  CHECK(gloo.at("sums").size() == 1);     // over the number of ranks that train
  CHECK(gloo.at("tensor_parallel_sums").size() == 1);
  const double overlap = gloo.at("tensor_parallel_sums_during_compute").at("overlap");
  CHECK(overlap >= 0);
  CHECK(overlap <= 1);
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(file));
  CHECK(cluster.within_node.tensor_parallel_overlap == overlap);
  const auto& computing = gloo.at("computing");
  for (const char* series : {"arrival", "sender", "receiver", "sum"})
    CHECK(computing.at(series).at("samples").size() >= 3);
  CHECK(cluster.within_node.latency.value == computing.at("arrival").at("fit").at("latency_s"));
  CHECK(cluster.within_node.overheads.send.each.value > 0);
  CHECK(cluster.within_node.overheads.sum.each.value > 0);
  CHECK_FALSE(report.at("links").at(0).contains("computing"));
  CHECK(cluster.within_node.collective_bandwidth_per_s > 0);
  CHECK_FALSE(cluster.within_node.shared);
  CHECK(json::parse(test::text_of(file)) == report.at("cluster"));

  const auto slowed = run_program(
      small_gpt("simulate", {"--cluster", file, "--json", "--set", "pipeline.local_transfer=copy",
                             "--set", "cluster.within_node.latency_s=1"}));
  CAPTURE(slowed.err);
  REQUIRE(slowed.exit_code == 0);
  CHECK(json::parse(slowed.out).at("iteration_s") > 2);  // in both directions
}

TEST_CASE("profile --links --between threads needs no processes", "[cli][links]") {
  const auto result = run_program(links({"--between", "threads"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("in process, within a node\n"));
  CHECK(result.out.find("a transfer: ") != std::string::npos);
  CHECK(result.out.find("a step of an all-reduce: ") != std::string::npos);
  CHECK(result.out.find("Gloo") == std::string::npos);
}

TEST_CASE("profile --links: a process that dies ends the others, and the error names it",
          "[cli][links]") {
  const test::Running running(
      small_gpt("profile", {"--links", "--between", "processes", "--within", "300"}));
  const auto begin = std::chrono::steady_clock::now();
  while (running.children().size() < 4 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(running.children().size() == 4);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // until they have met
  kill(running.children().at(2), SIGKILL);
  const auto result = running.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("rank 2") != std::string::npos);
}

}  // namespace links_test
