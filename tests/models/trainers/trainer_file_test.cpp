#include "pipewright/models/trainers/trainer_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace trainer_file_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

/// Sixteen blocks, which stages of 1 to 8 ranks divide unequally.
Scenario plan_of(const std::string& schedule, int ranks, int chunks, int replicas) {
  Scenario scenario;
  scenario.name = "told";
  TransformerShape shape{.sequence = 64};
  shape.config.layers = 16;
  shape.config.heads = shape.config.kv_heads = 4;
  shape.config.head_channels = shape.config.value_channels = 16;
  scenario.model = shape;
  scenario.data = {.kind = "tokens", .path = "tokens.bin"};
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.chunks = chunks;
  scenario.pipeline.replicas = replicas;
  scenario.pipeline.microbatches = 4 * ranks;
  scenario.training.microbatch_size = 3;
  const int stages = ranks * chunks;
  std::vector<int> borders{0};
  for (int stage = 1; stage < stages; ++stage)
    borders.push_back(1 + 16 * stage / stages - (stage == 1 && stages > 2 ? 1 : 0));
  borders.push_back(18);
  scenario.pipeline.partition = borders;
  return scenario;
}

/// A scenario that differs in every field that a file may set, after the file's assignments.
Scenario read_back(Trainer trainer, const Scenario& told) {
  Scenario other = plan_of("gpipe", 2, 1, told.pipeline.replicas);
  other.pipeline.microbatches = 7;
  other.training.microbatch_size = 5;
  auto document = JsonDocument::parse(to_json(other).dump(), "other.json");
  for (const std::string& assignment :
       assignments_of(trainer, trainer_file(trainer, told), file_name(trainer), cut_context(other)))
    document.set(assignment);
  return scenario_from_json(document);
}

/// Returns all fields that determine the parallelism of a training.
Json cut_of(const Scenario& scenario) {
  Json json = to_json(scenario).at("pipeline");
  for (const char* training : {"microbatch_size", "zero", "recompute"})
    json[training] = to_json(scenario).at("training").at(training);
  if (json["schedule"] == "megatron-interleaved")  // the same if ranks divide microbatches
    json["schedule"] = "interleaved-1f1b";
  if (scenario.pipeline.replicas == 1)
    json["zero"] = 0;  // there are no other replicas
  return json;
}

TEST_CASE("An exported plan is read back as the same one, or each unsupported field is named",
          "[plan][trainers]") {
  std::map<Trainer, int> read;
  const auto check = [&](Trainer trainer, const Scenario& scenario) {
    const auto lines = unsupported_fields(trainer, scenario);
    if (lines.empty()) {
      INFO(to_string(trainer));
      CHECK(cut_of(read_back(trainer, scenario)) == cut_of(scenario));
      ++read[trainer];
      return;
    }
    static const Json fields = to_json(scenario);
    for (const std::string& line : lines) {
      const std::string field = line.substr(0, line.find_first_of("=:"));
      const std::size_t dot = field.find('.');
      REQUIRE(fields.contains(field.substr(0, dot)));
      if (dot != field.npos)
        CHECK(fields.at(field.substr(0, dot)).contains(field.substr(dot + 1)));
    }
    CHECK_THROWS_AS(trainer_file(trainer, scenario), Infeasible);
  };
  for (const std::string& word : trainers())
    for (const ScheduleDescriptor& schedule : schedules())
      for (const int ranks : {1, 4})
        for (const int replicas : {1, 3})
          for (const int tensor : {1, 2})
            for (const int zero : {0, 1, 2, 3})
              for (const auto recompute :
                   {RecomputeMode::None, RecomputeMode::Full, RecomputeMode::Selective}) {
                if (!schedule.trains_batch() || (recompute == RecomputeMode::Selective && zero > 0))
                  continue;
                Scenario scenario =
                    plan_of(schedule.name, ranks, usual_chunks(schedule.chunks).front(), replicas);
                scenario.pipeline.tensor = tensor;
                scenario.pipeline.sequence_parallel = tensor > 1;
                scenario.training.zero = zero;
                scenario.training.recompute = recompute;
                check(trainer_of(word), scenario);
              }
  // 1F1B, and our version of torch's interleaved order under its rules.
  CHECK(read[Trainer::Megatron] > 70);
  CHECK(read[Trainer::Torchtitan] > 100);
  CHECK(read[Trainer::TorchtitanToml] > 100);
  CHECK(read[Trainer::DeepSpeed] == 2 * 2 * 2 * 2);  // ranks, replicas, ZeRO 0 and 1, recomputation
}

TEST_CASE("A trainer runs the schedules that declare it, and its file is read back as the same one",
          "[plan][trainers]") {
  const auto check = [](Trainer trainer, const ScheduleDescriptor& schedule, bool runs) {
    const int chunks = usual_chunks(schedule.chunks).front();
    const Scenario scenario = plan_of(schedule.name, 4, chunks, 1);
    CAPTURE(to_string(trainer), schedule.name);
    CHECK(unsupported_fields(trainer, scenario).empty() == runs);
    if (!runs)
      return;
    const auto read = assignments_of(trainer, trainer_file(trainer, scenario), file_name(trainer));
    const auto name = "pipeline.schedule=\"" + schedule.name + "\"";
    // With rounds of one microbatch per rank, Megatron-LM's two schedules are the same.
    const bool is_one_of_two = trainer == Trainer::Megatron && schedule.takes_group;
    CHECK((std::ranges::find(read, name) != read.end()) != is_one_of_two);
  };
  for (const ScheduleDescriptor& schedule : schedules())
    if (schedule.trains_batch()) {
      check(Trainer::Megatron, schedule, schedule.runs_in_megatron);
      check(Trainer::DeepSpeed, schedule, schedule.runs_in_deepspeed);
      check(Trainer::Torchtitan, schedule, !schedule.torch_class.empty());
      check(Trainer::TorchtitanToml, schedule, !schedule.torch_class.empty());
      CHECK(torch_schedule(schedule.name) == schedule.torch_class);
    }
  CHECK(torch_schedule("own").empty());
}

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(PIPEWRIGHT_TEST_DATA_DIR "/trainers/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  REQUIRE(lines.size() > 20);
  return lines;
}

TEST_CASE("Torchtitan 0.2 has every exported field, and accepts its values", "[plan][trainers]") {
  std::map<std::string, std::string> types;
  for (const std::string& line : lines_of("torchtitan-0.2.2.txt"))
    types[line.substr(0, line.find('\t'))] = line.substr(
        line.find('\t') + 1, line.find('\t', line.find('\t') + 1) - line.find('\t') - 1);
  Scenario scenario = plan_of("zbv", 4, 2, 3);
  scenario.training.zero = 3;
  scenario.training.precision = Precision::Mixed;
  scenario.training.fp32_gradients = true;
  std::istringstream text(trainer_file(Trainer::TorchtitanToml, scenario));
  std::string section;
  int fields = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("["))
      section = line.substr(1, line.size() - 2);
    if (line.find(" = ") == std::string::npos || line.starts_with("#"))
      continue;
    const std::string field = section + "." + line.substr(0, line.find(" = "));
    const std::string value = line.substr(line.find(" = ") + 3);
    INFO(field << " = " << value << ": " << types[field]);
    REQUIRE(types.contains(field));
    ++fields;
    const std::string& type = types[field];
    if (type.starts_with("Literal"))
      CHECK(type.find("'" + value.substr(1, value.size() - 2) + "'") != type.npos);
    else
      CHECK((value.front() == '"') == (type == "str"));
  }
  CHECK(fields >= 20);
}

TEST_CASE("Megatron-LM has every exported option, with or without a value", "[plan][trainers]") {
  std::map<std::string, bool> takes_value;
  for (const std::string& line : lines_of("megatron-core-0.20.txt"))
    takes_value[line.substr(0, line.find(' '))] = line.ends_with(" value");
  Scenario scenario = plan_of("interleaved-1f1b", 4, 2, 2);
  scenario.training.zero = 1;
  scenario.training.recompute = RecomputeMode::Full;
  scenario.training.optimizer = Optimizer::Sgd;
  auto& config = scenario.model.as<TransformerShape>().config;
  config.kv_heads = 2;
  config.gated = true;
  config.experts = 4;
  config.experts_per_token = 2;
  config.expert_feed_forward = 32;
  config.set_mixture_behind(3);
  const std::string text = trainer_file(Trainer::Megatron, scenario);
  CHECK(text.find("--moe-layer-freq '([0]*3+[1]*13)'") != text.npos);
  std::istringstream words(text);
  std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  int options = 0;
  for (std::size_t w = 0; w < all.size(); ++w)
    if (all[w].starts_with("--")) {
      INFO(all[w]);
      REQUIRE(takes_value.contains(all[w]));
      const bool has_value = w + 1 < all.size() && !all[w + 1].starts_with("--");
      CHECK(has_value == takes_value[all[w]]);
      ++options;
    }
  CHECK(options > 25);
}

TEST_CASE("Public models exported as Megatron's arguments keep their sizes", "[plan][trainers]") {
  int told = 0;
  for (const auto& file : std::filesystem::directory_iterator(PIPEWRIGHT_TEST_DATA_DIR "/models")) {
    if (file.path().extension() != ".json")
      continue;
    INFO(file.path().filename());
    TransformerTraining training = read_transformer(file.path()).training;
    training.batch = 8;
    Scenario scenario = plan_of("1f1b", 1, 1, 1);
    scenario.model = shape_of(training);
    scenario.pipeline.partition =
        std::vector<int>{0, static_cast<int>(model_of(scenario).layers.size())};
    const auto lines = unsupported_fields(Trainer::Megatron, scenario);
    if (!lines.empty()) {  // its arguments do not support the model
      CHECK(lines.front().starts_with("model."));
      continue;
    }
    const auto read =
        transformer_from_megatron(trainer_file(Trainer::Megatron, scenario), "megatron.txt");
    CHECK(model_of(ModelShape(shape_of(read.training))).layers == model_of(scenario).layers);
    ++told;
  }
  CHECK(told >= 15);
}

TEST_CASE("DeepSpeed's file has what its engine checks, and only such faults are rejected",
          "[plan][trainers]") {
  Scenario scenario = plan_of("1f1b", 4, 1, 3);
  scenario.training.precision = Precision::MixedHalf;
  scenario.training.recompute = RecomputeMode::Full;
  const auto json = nlohmann::json::parse(trainer_file(Trainer::DeepSpeed, scenario));
  CHECK(json.at("train_batch_size") == 3 * 16 * 3);  // samples, microbatches, replicas
  CHECK(json.at("train_micro_batch_size_per_gpu") == 3);
  CHECK(json.at("gradient_accumulation_steps") == 16);
  CHECK(json.at("fp16").at("enabled") == true);
  CHECK(json.at("bf16").at("enabled") == false);
  CHECK(json.at("pipeline").at("partition") == std::vector<int>{0, 4, 9, 13, 18});
  const auto refusal = [](const std::string& text) {
    return error_of([&] { assignments_of(Trainer::DeepSpeed, text, "ds.json"); });
  };
  CHECK(refusal(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4,
                    "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}})") ==
        "ds.json:1:2: /train_batch_size: 10 is not a multiple of train_micro_batch_size_per_gpu 4 "
        "times gradient_accumulation_steps 2\n"
        "ds.json:2:77: /zero_optimization/stage: its pipeline engine supports ZeRO 0 and 1 (it "
        "rejects ZeRO 2 and 3)");
  CHECK(refusal(R"({"train_batch_size": 2, "pipeline": {"stages": 2, "partition": [0, 4]}})") ==
        "ds.json:1:51: /pipeline/partition: the first layer of each of 2 stages and the number of "
        "layers are needed here");
  CHECK(refusal(R"({"train_batch_size": "auto", "pipeline": {"partition": "best"}})") ==
        "no error");
}

TEST_CASE("A faulty torchtitan file is rejected with the place of each fault", "[plan][trainers]") {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { assignments_of(Trainer::TorchtitanToml, text, "t.toml"); });
  };
  CHECK(refusal("[parallelism\n").starts_with("t.toml:1:13: "));
  const std::string none = "[activation_checkpoint]\nmode = \"none\"\n[parallelism]\n";
  CHECK(refusal(none) == "no error");
  CHECK(refusal(none + "pipeline_parallel_degree = 2\n")
            .starts_with("t.toml: parallelism.module_fqns_per_model_part: list the modules"));
  CHECK(refusal(none + "pipeline_parallel_degree = 0\npipeline_parallel_schedule = \"2F2B\"\n") ==
        "t.toml:4:28: parallelism.pipeline_parallel_degree: a whole number of at least 1 is needed "
        "here\nt.toml:5:30: parallelism.pipeline_parallel_schedule: 2F2B is not a known torch "
        "schedule");
  CHECK(
      refusal(none + "pipeline_parallel_degree = 2\nmodule_fqns_per_model_part = "
                     "[[\"tok_embeddings\", \"layers.1\"], [\"norm\", \"output\"]]\n") ==
      "t.toml:5:30: parallelism.module_fqns_per_model_part: [tok_embeddings, layers.1]: known here "
      "are tok_embeddings, layers.0 and so on in their order, norm and output");
  CHECK(refusal("").find("activation_checkpoint.mode: \"selective\"") != std::string::npos);
  // Replicas that it does not set are those of the scenario.
  const auto assignments = assignments_of(Trainer::TorchtitanToml, none, "t.toml", {.replicas = 6});
  CHECK(std::ranges::find(assignments, "pipeline.replicas=6") != assignments.end());
}

/// Returns the stages that torchtitan makes of 32 blocks on 4 ranks, or the fault.
std::string own_cut(const std::string& fields, int blocks = 32) {
  std::string answer;
  const std::string error = error_of([&] {
    for (const std::string& assignment :
         assignments_of(Trainer::TorchtitanToml,
                        "[activation_checkpoint]\nmode = \"none\"\n[parallelism]\n"
                        "pipeline_parallel_degree = 4\n" +
                            fields,
                        "t.toml", {.blocks = blocks}))
      if (assignment.starts_with("pipeline.partition=") ||
          assignment.starts_with("pipeline.chunks="))
        answer += assignment.substr(assignment.find('=') + 1) + " ";
  });
  return error == "no error" ? answer : error;
}

TEST_CASE("Stages that a torchtitan file does not list are cut as torchtitan cuts them",
          "[models][trainers]") {
  // Figures of torchtitan's own functions (tests/torch/trainers.py): 9 9 8 9 blocks less the ends.
  CHECK(own_cut("") == "[0,9,18,26,34] 1 ");
  const std::string looped = "pipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  CHECK(own_cut(looped) == "[0,5,10,14,18,22,26,30,34] 2 ");
  CHECK(own_cut(looped + "pipeline_parallel_layers_per_stage = 3\n") ==
        "[0,3,6,9,12,15,18,21,24,27,30,32,34] 3 ");
  CHECK(own_cut("pipeline_parallel_first_stage_less_layers = 0\n") == "[0,10,18,26,34] 1 ");
  CHECK(own_cut("pipeline_parallel_last_stage_less_layers = 2\n") == "[0,9,18,27,34] 1 ");
  CHECK(own_cut("pipeline_parallel_layers_per_stage = 3\n") ==
        "t.toml:5:38: parallelism.pipeline_parallel_layers_per_stage: 3 makes 12 stages of 32 "
        "blocks, but 1F1B on 4 ranks needs one stage for each");
  CHECK(own_cut(looped + "pipeline_parallel_layers_per_stage = 9\n").find("at least two stages") !=
        std::string::npos);
  CHECK(own_cut(looped, 4).find("8 stages asked for") != std::string::npos);
}

TEST_CASE("A Python configuration is followed through assignments and functions of its file",
          "[models][trainers]") {
  const std::string text =
      "from torchtitan.trainer import Trainer\n\n"
      "def _base(backend: str = \"flex\"):\n"
      "    \"\"\"Two\nlines.\"\"\"\n"
      "    spec = model_registry(\"8B\", attn_backend=backend)\n"
      "    return Trainer.Config(model_spec=spec, optimizer=default_adamw(lr=3e-4),\n"
      "        training=TrainingConfig(local_batch_size=6, disable_cuda_graphs=True),  # text\n"
      "        activation_checkpoint=FullAC.Config())\n\n"
      "def big():\n"
      "    config = _base()\n"
      "    config.parallelism = ParallelismConfig(\n"
      "        pipeline_parallel_degree=2, pipeline_parallel_microbatch_size=2,\n"
      "        data_parallel_shard_degree=1)\n"
      "    config.parallelism.tensor_parallel_degree = 8\n"
      "    return config\n";
  const auto read = [&](const std::string& all, const std::string& function) {
    return assignments_of(Trainer::Torchtitan, all, "c.py",
                          {.blocks = 6, .units = 0, .function = function});
  };
  const auto assignments = read(text, "big");
  for (const char* expected :
       {"pipeline.ranks=2", "pipeline.microbatches=3", "pipeline.tensor=8",
        "pipeline.partition=[0,4,8]", "training.recompute=\"full\"", "training.zero=0",
        "training.learning_rate=0.0003", "training.precision=\"mixed\""}) {
    INFO(expected);
    CHECK(std::ranges::find(assignments, expected) != assignments.end());
  }
  const auto refusal = [&](const std::string& more, const std::string& function = "big") {
    return error_of([&] { read(text + more, function); });
  };
  CHECK(refusal("", "") == "c.py: its functions are _base, big: name one, as in c.py:_base");
  CHECK(refusal("", "none") == "c.py: it has no function \"none\"");
  CHECK(refusal("def f():\n    config = big()\n    change(config)\n    return config\n", "f")
            .starts_with("c.py:20:5: Python is not run"));
  CHECK(refusal("def f():\n    return Trainer.Config(training=TrainingConfig(])\n", "f")
            .starts_with("c.py:19:12: a returned configuration is needed here"));
  CHECK(refusal("def f():\n    config = big()\n    p = config.parallelism\n"
                "    p.tensor_parallel_degree = 2\n    return config\n",
                "f")
            .starts_with("c.py:21:5: assign to a field of the returned configuration"));
  CHECK(refusal("def f():\n    config = big()\n"
                "    config.training.local_batch_size = size()\n    return config\n",
                "f")
            .starts_with("c.py:20:40: training.local_batch_size: write the value itself"));
  CHECK(refusal("def f():\n    config = llama3_8b()\n    config.parallelism = "
                "ParallelismConfig()\n    return config\n",
                "f")
            .find("c.py: training: llama3_8b sets it, which this file does not define") !=
        std::string::npos);
  CHECK(refusal("def f():\n    config = big()\n    config.model_spec = model_registry(\"8B\", "
                "converters=[Float8LinearConverter.Config()])\n    return config\n",
                "f")
            .find("model_spec.converters: ") != std::string::npos);
}

}  // namespace trainer_file_test
