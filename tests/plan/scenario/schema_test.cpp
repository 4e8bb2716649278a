// The schemas that editors use say what the readers say: every key, every word, every default.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/scenario/scenario_schema.hpp"
#include "schema_check.hpp"
#include "support/catch.hpp"

namespace schema_test {

using namespace pipewright::plan;
using pipewright::test::SchemaCheck;

const std::filesystem::path scenarios = std::filesystem::path(PIPEWRIGHT_SOURCE_DIR) / "scenarios";

Json schema_json(const std::string& name) {
  return JsonDocument::read(scenarios / "schema" / (name + ".schema.json")).root();
}

SchemaCheck schema(const std::string& name) { return SchemaCheck(schema_json(name)); }

const std::vector<std::string> none;

/// Keys that the schema describes and `value` lacks; `$schema` is for editors alone, not every
/// cluster's machine was measured or has levels and kinds of nodes, and `profile` adds to costs
/// what they are made of.
std::vector<std::string> keys_not_written(const SchemaCheck& check, const Json& value) {
  std::vector<std::string> absent;
  check.walk(value, [&](const Json& part, const Json& written, const std::string& pointer) {
    static const std::set<std::string> may_lack{"$schema", "machine", "work",
                                                "alike",   "fabric",  "mixture"};
    const Json described = part.value("properties", Json::object());
    for (const auto& item : described.items())
      if (!may_lack.contains(item.key()) && !written.contains(item.key()))
        absent.push_back(pointer + "/" + item.key());
  });
  return absent;
}

/// Where the schema's default is not the value, for a value that was left to its default.
std::vector<std::string> other_defaults(const SchemaCheck& check, const Json& value) {
  std::vector<std::string> different;
  check.walk(value, [&](const Json& part, const Json& written, const std::string& pointer) {
    if (part.contains("default") && part.at("default") != written)
      different.push_back(pointer);
  });
  return different;
}

Scenario shipped(const std::string& name) {
  return scenario_from_json(JsonDocument::read(scenarios / name / "scenario.json"));
}

/// What a scenario that leaves out all it can is read as.
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

void check_written(const std::string& name, const Json& value) {
  CAPTURE(name, value.dump());
  CHECK(schema(name).errors(value) == none);
  CHECK(keys_not_written(schema(name), value) == none);
}

TEST_CASE("The shipped scenarios fit the schema and can be read", "[plan][schema]") {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scenarios)) {
    const auto file = entry.path() / "scenario.json";
    if (!std::filesystem::exists(file))
      continue;
    CAPTURE(file.string());
    const auto document = JsonDocument::read(file);
    CHECK(schema("scenario").errors(document.root()) == none);
    CHECK(scenario_from_json(document).name == entry.path().filename().string());
    CHECK(std::filesystem::exists(entry.path() / document.root().at("$schema").get<std::string>()));
    ++read;
  }
  CHECK(read >= 3);
}

TEST_CASE("The shipped text is there to be learnt from", "[plan][schema]") {
  CHECK(std::filesystem::file_size(shipped("gpt-text").data.path) > 250'000);
}

TEST_CASE("A scenario with an unknown key does not fit the schema", "[plan][schema]") {
  Json json = JsonDocument::read(scenarios / "gpt-text" / "scenario.json").root();
  json["pipeline"]["shedule"] = "1f1b";
  CHECK(schema("scenario").errors(json) ==
        std::vector<std::string>{"/pipeline/shedule: is not described"});
}

TEST_CASE("What the readers refuse does not fit the schema either", "[plan][schema]") {
  const Json good = JsonDocument::read(scenarios / "gpt-text" / "scenario.json").root();
  const auto broken = [&](const std::string& pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    const auto refused = [&] {
      scenario_from_json(JsonDocument::parse(json.dump(), (scenarios / "x.json").string()));
    };
    CAPTURE(pointer, value.dump());
    CHECK_FALSE(schema("scenario").errors(json).empty());
    CHECK_THROWS_AS(refused(), InputError);
  };
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
  broken("/pipeline/hand_over", "loan");
  broken("/training/optimizer", "lion");
  broken("/training/precision", "half");
  broken("/training/zero", 4);
  broken("/training/recompute", "some");
  broken("/training/microbatch_lengths", 1);
  broken("/training/jitter", -1);
}

TEST_CASE("Every key that a schema describes is written, and no other", "[plan][schema]") {
  check_written("scenario", to_json(shipped("gpt-text")));
  check_written("scenario", to_json(shipped("alexnet-cifar10")));
  Cluster cluster = shipped("gpt-text").cluster;
  check_written("cluster", to_json(cluster));
  Machine& machine = cluster.machine.emplace();
  machine.reductions = {.ranks = {2}, .bytes = {1e6}, .seconds = {1e-4}};
  machine.layers.push_back(
      {.hidden = 8, .heads = 2, .sequence = 4, .tensor = 1, .microbatch = 1, .runs = 3});
  machine.sources = {"a data sheet"};
  cluster.fabric = {.rails = true, .levels = {{.name = "spine", .group_nodes = 2, .link = {}}}};
  cluster.mixture = {.kinds = {{.nodes = cluster.nodes, .device = cluster.device}}};
  check_written("cluster", to_json(cluster));
  CHECK(cluster_from_json(JsonDocument::parse(to_json(cluster).dump(), "c.json")) == cluster);
  check_written("model", to_json(gpt_model({})));
  LayerCosts costs;
  costs.layers.resize(1);
  check_written("costs", to_json(costs));
  check_written("topology", to_json(Topology({"pipe"}, {2})));
  check_written("partition", to_json(PlacedPartition{{{0, 1, 2}}, {0, 1}}));
  const Program program{.microbatches = 1,
                        .placement = one_route({0, 1}),
                        .ranks = {{{InstructionKind::Load, 0, 0, 0},
                                   {InstructionKind::SendActivation, 0, 0, 0},
                                   {InstructionKind::OptimizerStep, 0}},
                                  {}}};
  check_written("program", to_json(program));
}

TEST_CASE("The schema's defaults are those of the reader", "[plan][schema]") {
  CHECK(other_defaults(schema("scenario"), barest("gpt", "text")) == none);
  CHECK(other_defaults(schema("scenario"), barest("alexnet", "cifar10")) == none);
}

TEST_CASE("The scenario's schema is what its list of fields says", "[plan][schema]") {
  const auto file = scenarios / "schema" / "scenario.schema.json";
  const auto made = std::filesystem::temp_directory_path() / "scenario.schema.json";
  std::ifstream stream(file);
  const bool same = std::string(std::istreambuf_iterator(stream), {}) == scenario_schema();
  if (!same)
    write_file(made, scenario_schema());
  INFO("copy " << made << " to " << file);
  CHECK(same);
}

TEST_CASE("The schema's words are those of the reader", "[plan][schema]") {
  const Json program = schema_json("program")["properties"];
  CHECK(program["communicators"]["enum"] == Json(communicator_layouts()));
  CHECK(program["transfers"]["enum"] == Json(transfer_modes()));
}

TEST_CASE("The check refuses a schema keyword that it does not know", "[plan][schema]") {
  CHECK_THROWS_AS(SchemaCheck(Json{{"type", "object"}, {"dependentRequired", Json::object()}}),
                  std::logic_error);
}

}  // namespace schema_test
