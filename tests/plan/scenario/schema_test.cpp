// Readers and writers of every kind of file that has a schema. The documents are saved for
// tests/schemas/check.py, which validates them against the schemas.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program_schema.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/scenario/scenario_schema.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"

namespace schema_test {

using namespace pipewright::plan;
namespace fs = std::filesystem;

const fs::path scenarios = fs::path(PIPEWRIGHT_SOURCE_DIR) / "scenarios";

/// Saves a document below $PIPEWRIGHT_SCHEMA_DOCUMENTS/<use>/<schema>. Uses: "written" (valid, has
/// every key of the schema), "default" (also, all optional keys have their defaults) and "refused".
void leave(const std::string& use, const std::string& schema, const std::string& name,
           const Json& value) {
  const char* const folder = std::getenv("PIPEWRIGHT_SCHEMA_DOCUMENTS");
  if (folder == nullptr)
    return;
  static const auto emptied = fs::remove_all(folder);
  static_cast<void>(emptied);
  const fs::path file = fs::path(folder) / use / schema / (name + ".json");
  fs::create_directories(file.parent_path());
  write_file(file, value.dump());
}

Scenario shipped(const std::string& name) {
  return scenario_from_json(JsonDocument::read(scenarios / name / "scenario.json"));
}

/// Returns a scenario that omits everything optional, as the reader completes it.
Json barest(const std::string& kind, const std::string& data) {
  const std::string text = R"({"format": "pipewright/scenario/1", "name": "n",
    "model": {"kind": ")" + kind +
                           R"("}, "data": {"kind": ")" + data + R"(", "path": "x"},
    "cluster": {"name": "c", "nodes": 1, "devices_per_node": 1, "device": {"name": "cpu"},
                "within_node": {"latency_s": 0, "bandwidth_per_s": 1}},
    "pipeline": {"ranks": 1, "microbatches": 1, "schedule": "1f1b"},
    "training": {"steps": 1, "microbatch_size": 1}})";
  return to_json(scenario_from_json(JsonDocument::parse(text, "bare.json")));
}

TEST_CASE("The shipped scenarios can be read", "[plan][schema]") {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(scenarios)) {
    const auto file = entry.path() / "scenario.json";
    if (!fs::exists(file))
      continue;
    CAPTURE(file.string());
    const auto document = JsonDocument::read(file);
    CHECK(scenario_from_json(document).name == entry.path().filename().string());
    CHECK(fs::exists(entry.path() / document.root().at("$schema").get<std::string>()));
    ++read;
  }
  CHECK(read >= 3);
}

TEST_CASE("The shipped training text exists", "[plan][schema]") {
  CHECK(fs::file_size(shipped("gpt-text").data.path) > 250'000);
}

TEST_CASE("The readers reject unknown keys and values out of bounds", "[plan][schema]") {
  int refusals = 0;
  const Json good = JsonDocument::read(scenarios / "gpt-text" / "scenario.json").root();
  const auto broken = [&](const std::string& pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    const auto refused = [&] {
      scenario_from_json(JsonDocument::parse(json.dump(), (scenarios / "x.json").string()));
    };
    CAPTURE(pointer, value.dump());
    CHECK_THROWS_AS(refused(), InputError);
    leave("refused", "scenario", std::to_string(refusals++), json);
  };
  broken("/pipeline/shedule", "1f1b");
  broken("/format", "pipewright/scenario/2");
  broken("/model/kind", "bert");
  broken("/model/blocks", 0);
  broken("/model/blocks", 10'001);
  broken("/model/vocabulary", 100);
  broken("/data/path", "");
  broken("/cluster/nodes", 0);
  broken("/cluster/within_node/bandwidth_per_s", 0);
  broken("/cluster/within_node/latency_s", -1);
  broken("/pipeline/microbatches", 0);
  broken("/pipeline/ranks", 1.5);
  broken("/pipeline/schedule", "2f2b");
  broken("/pipeline/blocking", "no");
  broken("/training/learning_rate", 0);
  broken("/profile/spread", 0);
  broken("/cluster/rank_speeds", Json{1, 0});
  broken("/pipeline/replicas", 0);
  broken("/pipeline/local_transfer", "loan");
  broken("/training/optimizer", "lion");
  broken("/training/precision", "half");
  broken("/training/zero", 4);
  broken("/training/recompute", "some");
  broken("/training/microbatch_lengths", 1);
  broken("/training/jitter", -1);
}

TEST_CASE("Every kind of file is saved with all of its keys", "[plan][schema]") {
  leave("written", "scenario", "gpt-text", to_json(shipped("gpt-text")));
  leave("written", "scenario", "alexnet-cifar10", to_json(shipped("alexnet-cifar10")));
  Cluster cluster = shipped("gpt-text").cluster;
  leave("written", "cluster", "plain", to_json(cluster));
  Machine& machine = cluster.machine.emplace();
  machine.reductions = {.ranks = {2}, .bytes = {1e6}, .seconds = {1e-4}};
  machine.layers.push_back(
      {.hidden = 8, .heads = 2, .sequence = 4, .tensor = 1, .microbatch = 1, .runs = 3});
  machine.sources = {"a data sheet"};
  cluster.fabric = {.rails = true, .levels = {{.name = "spine", .group_nodes = 2, .link = {}}}};
  cluster.mixture = {.kinds = {{.nodes = cluster.nodes, .device = cluster.device}}};
  leave("written", "cluster", "full", to_json(cluster));
  CHECK(cluster_from_json(JsonDocument::parse(to_json(cluster).dump(), "c.json")) == cluster);
  leave("written", "model", "gpt", to_json(gpt_model({})));
  LayerCosts costs;
  costs.layers.resize(1);
  leave("written", "costs", "plain", to_json(costs));
  leave("written", "topology", "line", to_json(Topology({"pipe"}, {2})));
  leave("written", "partition", "two", to_json(PlacedPartition{{{0, 1, 2}}, {0, 1}}));
}

TEST_CASE("Programs of all schedules use every instruction", "[plan][schema]") {
  std::set<InstructionKind> used;
  for (const ScheduleDescriptor& entry : schedules())
    for (int zero = 0; zero <= 3; ++zero) {
      const LoweringOptions options{
          .replicas = 2,
          .tied_stages = {0, 3},
          .recompute = zero == 1 ? RecomputeMode::Full : RecomputeMode::None,
          .zero = zero,
          .gradient_norm = true,
          .share_loss = true};
      try {
        const Program program = lower(pipewright::test::make(entry.name, 4, 8), options);
        leave("written", "program", entry.name + std::to_string(zero), to_json(program));
        for (const auto& rank : program.ranks)
          for (const Instruction& instruction : rank)
            used.insert(instruction.kind);
      } catch (const InputError&) {  // the schedule does not accept these options
      }
    }
  CHECK(used.size() == instruction_kinds);
}

TEST_CASE("A scenario is saved with the reader's defaults", "[plan][schema]") {
  for (const auto& [kind, data] : {std::pair{"gpt", "text"}, {"alexnet", "cifar10"}}) {
    const Json bare = barest(kind, data);
    CHECK(to_json(scenario_from_json(JsonDocument::parse(bare.dump(), "bare.json"))) == bare);
    leave("default", "scenario", kind, bare);
  }
}

void check_shipped(const std::string& name, const std::string& schema) {
  const auto file = scenarios / "schema" / name, made = fs::temp_directory_path() / name;
  std::ifstream stream(file);
  const bool same = std::string(std::istreambuf_iterator(stream), {}) == schema;
  if (!same)
    write_file(made, schema);
  INFO("copy " << made << " to " << file);
  CHECK(same);
}

TEST_CASE("The shipped scenario schema matches the list of fields", "[plan][schema]") {
  check_shipped("scenario.schema.json", scenario_schema());
}

TEST_CASE("The shipped Program schema matches the table of instructions", "[plan][schema]") {
  check_shipped("program.schema.json", program_schema());
}

}  // namespace schema_test
