#include "pipewright/models/estimates/estimated_costs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/measured_model.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "search/support/drafts.hpp"
#include "support/custom_model.hpp"
#include "support/exported_archive.hpp"
#include "support/temp_folder.hpp"

namespace estimated_costs_test {

using namespace pipewright;
using models::estimated_costs;

plan::Scenario scenario(const std::vector<std::string>& assignments = {}) {
  return test::shared_card(assignments).scenario;
}

TEST_CASE("Estimated: a layer's time is its FLOPs at the achieved fraction of the peak",
          "[loop][costs]") {
  const auto known = scenario({"cluster.device.flops_per_s=1e12", "model.hidden=4096",
                               "model.heads=32", "cluster.device.memory_bandwidth_per_s=1e12"});
  const plan::LayerCosts costs = estimated_costs(known);
  const double flops = model_of(known).layers[1].forward_flops;
  CHECK(costs.layers[1].forward.value == Approx(4 * flops / 0.4e12));
  CHECK(costs.layers[1].input_gradient == costs.layers[1].forward);
  CHECK(costs.layers[1].parameters == model_of(known).layers[1].parameter_bytes);
  CHECK(costs.microbatch_size == 4);
  CHECK(models::is_estimated(costs));
  // No FLOPs, but bytes to move.
  CHECK(costs.layers[0].forward.value > 0);
}

TEST_CASE("Estimated: the note says which peak was used", "[loop][costs]") {
  CHECK(models::estimate_note(scenario()) ==
        "times are estimated, not measured: from the layers' FLOPs at 40 % of 1e+12 FLOP/s, which "
        "is assumed because the device's peak is not known");
  CHECK(models::estimate_note(scenario({"cluster.device.flops_per_s=9.89e14"})) ==
        "times are estimated, not measured: from the layers' FLOPs at 40 % of 9.89e+14 FLOP/s, the "
        "device's peak");
}

/// Returns a plain model of the kind; for a folder, one that exists.
plan::Json model_of_kind(const plan::ModelDescriptor& model) {
  plan::Json json = to_json(model.plain());
  static const test::TempFolder imported;
  if (model.kind == plan::ImportedShape::kind)
    json["path"] = test::ExportedArchive().untied().shape_in(imported.path()).path;
  else if (model.kind == plan::MeasuredShape::kind)
    for (const char letter : std::string("abcdefgh"))
      json["layers"].push_back({{"name", std::string(1, letter)}, {"parameter_bytes", 4096}});
  else if (json.contains("path"))
    json["path"] = PIPEWRIGHT_TEST_DATA_DIR "/hugging_face/llama2";
  return json;
}

TEST_CASE("Estimated: every schedule of every model gives a result", "[loop][costs]") {
  std::size_t answers = 0;
  for (const plan::ScheduleDescriptor& schedule : plan::schedules())
    for (const plan::ModelDescriptor& model : plan::model_kinds()) {
      const std::vector<std::string> changes{"pipeline.schedule=" + std::string(schedule.name),
                                             "pipeline.ranks=2",
                                             "pipeline.microbatches=8",
                                             "pipeline.replicas=1",
                                             "model=" + model_of_kind(model).dump(),
                                             fmt::format("data.kind={}", model.data.name)};
      CAPTURE(schedule.name, model.kind);
      search::Draft draft{scenario(changes)};
      CHECK(test::answer_to(draft).times.iteration > 0);
      ++answers;
    }
  CHECK(answers > 30);
  CHECK(answers == plan::schedules().size() * plan::model_kinds().size());
}

TEST_CASE("Estimated: a custom model costs what it declares", "[loop][costs]") {
  plan::Scenario own = scenario();
  own.model = test::StackShape{.depth = 2, .width = 6};
  const std::int64_t samples = own.training.microbatch_size;
  const auto costs = estimated_costs(own);
  REQUIRE(costs.layers.size() == 2);
  CHECK(costs.input == plan::Bytes{samples * 6 * 8});       // indices
  CHECK(costs.target == plan::Bytes{samples * 2 * 6 * 4});  // floats
  CHECK(costs.layers[0].activation == plan::Bytes{samples * 60 * 4});
  CHECK(costs.layers[0].selective_activation == plan::Bytes{samples * 18 * 4});
  CHECK(costs.layers[0].selective_forward == costs.layers[0].forward);  // as many FLOPs
}

/// Llama 3's small folder: 4 query heads of 8 channels, 2 key heads, feed-forward 37, hidden 32,
/// vocabulary 61.
plan::Scenario folder(const std::vector<std::string>& more = {}) {
  std::vector<std::string> changes{
      fmt::format(R"(model={{"kind": "hf", "path": "{}", "sequence": 23}})",
                  PIPEWRIGHT_TEST_DATA_DIR "/hugging_face/llama3"),
      "data.kind=tokens", "training.microbatch_size=3"};
  changes.insert(changes.end(), more.begin(), more.end());
  return scenario(changes);
}

TEST_CASE("Estimated: a folder's layers hold what the executor's layers hold", "[loop][costs]") {
  constexpr std::int64_t tokens = 3 * 23;
  // Two norms' outputs, the residual, queries, keys, values, the attention output, and three
  // feed-forward tensors.
  constexpr std::int64_t values = 3 * 32 + 2 * 32 + 2 * 16 + 3 * 37, sums = 4 * 4;
  const auto full = estimated_costs(folder());
  CHECK(full.layers[1].activation == plan::Bytes{tokens * (4 * values + sums)});
  CHECK(full.layers[1].selective_activation == plan::Bytes{tokens * sums});
  CHECK(full.layers[1].saves_input);
  CHECK(full.layers[0].activation == plan::Bytes{});
  CHECK(full.layers[3].activation == plan::Bytes{tokens * 4 * 32});
  CHECK(full.layers[3].output == plan::Bytes{tokens * 4 * 61});
  CHECK(full.loss.activation == plan::Bytes{tokens * 4 * 61 + 4});
  CHECK(full.input == plan::Bytes{tokens * 8});
  CHECK(full.layers[3].parameters == plan::Bytes{(61 + 1) * 32 * 4});
  CHECK(full.dtype == "float32");
  const auto mixed = estimated_costs(folder({"training.precision=mixed"}));
  CHECK(mixed.layers[1].activation == plan::Bytes{tokens * (2 * values + sums)});
  CHECK(mixed.layers[3].parameters * 2 == full.layers[3].parameters);
  CHECK(mixed.dtype == "bfloat16");
}

TEST_CASE("Estimated: the memory of shipped folders equals the measured one", "[loop][costs]") {
  for (const char* name : {"llama-tiny", "qwen3-moe-tiny"}) {
    CAPTURE(name);
    const std::string shipped = fmt::format("{}/scenarios/{}/", PIPEWRIGHT_SOURCE_DIR, name);
    const auto measured =
        plan::layer_costs_from_json(plan::JsonDocument::read(shipped + "costs.json"));
    plan::Scenario scenario =
        plan::scenario_from_json(plan::JsonDocument::read(shipped + "scenario.json"));
    scenario.pipeline.expert = 1;  // the measured mixtures are not partitioned
    const auto estimated = estimated_costs(scenario);
    CHECK(measured.tensor == estimated.tensor);
    CHECK(measured.dtype == estimated.dtype);
    CHECK(measured.loss.activation == estimated.loss.activation);
    REQUIRE(measured.layers.size() == estimated.layers.size());
    for (std::size_t at = 0; at < measured.layers.size(); ++at) {
      CAPTURE(measured.layers[at].name);
      const auto kept = [&](const plan::LayerCosts& costs) {  // the first layer's inputs are tokens
        const plan::LayerCost& layer = costs.layers[at];
        return layer.activation + (at == 0 && layer.saves_input ? costs.input : plan::Bytes{});
      };
      CHECK(kept(measured).value == kept(estimated).value);
      CHECK(measured.layers[at].selective_activation == estimated.layers[at].selective_activation);
      CHECK(measured.layers[at].output == estimated.layers[at].output);
      CHECK(measured.layers[at].parameters == estimated.layers[at].parameters);
    }
  }
}

TEST_CASE("Estimated: recomputation trades memory for time", "[loop][costs]") {
  const auto answer = [](const std::string& mode) {
    return test::answer_to({scenario({"training.recompute=" + mode})}).figures;
  };
  CHECK(answer("selective").peak < answer("none").peak);
  CHECK(answer("full").peak < answer("selective").peak);
  CHECK(answer("selective").iteration_s > answer("none").iteration_s);
  CHECK(answer("full").iteration_s > answer("selective").iteration_s);
}

TEST_CASE("Estimated: twice the microbatch gives twice the activations", "[loop][costs]") {
  const auto four = estimated_costs(scenario());
  const auto eight = estimated_costs(scenario({"training.microbatch_size=8"}));
  CHECK(eight.layers[1].activation == four.layers[1].activation * 2);
  CHECK(eight.layers[1].parameters == four.layers[1].parameters);
  CHECK(eight.layers[1].optimizer_step == four.layers[1].optimizer_step);
}

}  // namespace estimated_costs_test
