// Every field of another trainer's configuration is honored, known to be irrelevant, or rejected by
// name. The lists of fields are facts about the trainers (tests/data/trainers).

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace trainer_fields_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

using Values = std::map<std::string, Json>;

struct Field {
  std::string name;
  std::string type;
  std::string fallback;
  bool is_irrelevant = false;
};

std::vector<Field> fields_of(const std::string& file) {
  std::ifstream text(PIPEWRIGHT_TEST_DATA_DIR "/trainers/" + file);
  std::vector<Field> fields;
  for (std::string line; std::getline(text, line);) {
    std::istringstream parts(line);
    Field field;
    std::string use;
    std::getline(parts, field.name, '\t');
    std::getline(parts, field.type, '\t');
    std::getline(parts, field.fallback, '\t');
    std::getline(parts, use);
    field.is_irrelevant = use == "irrelevant";
    fields.push_back(field);
  }
  return fields;
}

/// Returns values of the field's type that differ from its default.
std::vector<Json> other_values(const Field& field) {
  std::vector<Json> values;
  if (field.type.starts_with("Literal[")) {
    for (std::size_t at = 0; (at = field.type.find('\'', at)) != field.type.npos;) {
      const std::size_t end = field.type.find('\'', at + 1);
      if (const std::string word = field.type.substr(at + 1, end - at - 1);
          "'" + word + "'" != field.fallback)
        values.emplace_back(word);
      at = end + 1;
    }
    return values;
  }
  if (field.type.starts_with("bool"))
    return {field.fallback != "True"};
  if (field.type.starts_with("int"))
    return {field.fallback == "3" ? 5 : 3};
  if (field.type.starts_with("float"))
    return {0.125};
  if (field.type.starts_with("list[list") || field.type.starts_with("List[List"))
    return {Json{{"tok_embeddings"}}};
  if (field.type.starts_with("list") || field.type.starts_with("List"))
    return {Json{"something"}};
  if (field.type.starts_with("dict") || field.type.starts_with("Dict"))
    return {Json{{"something", 1}}};
  return {"something"};
}

std::string python_literal(const Json& value) {
  if (value.is_boolean())
    return value.get<bool>() ? "True" : "False";
  return value.is_null() ? "None" : value.dump();
}

std::string toml_of(const Values& values) {
  std::string text;
  for (const auto& [field, value] : values) {
    const std::size_t dot = field.rfind('.');
    text += fmt::format("{}.{} = {}\n", field.substr(0, dot), field.substr(dot + 1), value.dump());
  }
  return text;
}

/// Returns a function that assigns field by field.
std::string python_of(const Values& values) {
  std::string text = "def plan():\n    config = Trainer.Config()\n";
  for (const auto& [field, value] : values)
    text += field == "activation_checkpoint"
                ? fmt::format("    config.{} = {}\n", field, value.get<std::string>())
                : fmt::format("    config.{} = {}\n", field, python_literal(value));
  return text + "    return config\n";
}

std::string json_of(const Values& values) {
  Json json = Json::object();
  for (const auto& [field, value] : values)
    json[Json::json_pointer(field)] = value;
  return json.dump(1);
}

/// Tries other values of every field of a list, each added to a configuration that is read.
void check_fields(Trainer trainer, const std::string& list, const Values& base,
                  std::string (*text_of)(const Values&)) {
  const CutContext context{.replicas = 4, .blocks = 16, .units = 64};
  const auto read = [&](const Values& values) {
    return assignments_of(trainer, text_of(values), "file", context);
  };
  const auto plain = read(base);
  int tried = 0;
  for (const Field& field : fields_of(list)) {
    INFO(field.name << ", by default " << field.fallback);
    bool has_effect = false;
    for (const Json& value : other_values(field)) {
      Values values = base;
      if (values[field.name] == value)
        values.erase(field.name);  // the base differs from the default
      else
        values[field.name] = value;
      std::vector<std::string> changed = plain;
      const std::string error = error_of([&] { changed = read(values); });
      if (error != "no error") {
        INFO(value << ": " << error);
        CHECK(error.find(field.name.substr(field.name.find_last_of("./") + 1)) != error.npos);
      }
      has_effect = has_effect || error != "no error" || changed != plain;
      ++tried;
    }
    CHECK(has_effect == !field.is_irrelevant);
  }
  CHECK(tried > 100);
}

TEST_CASE("Every field of torchtitan 0.3 is honored, irrelevant or rejected by name",
          "[models][trainers]") {
  const Values base{{"parallelism.pipeline_parallel_degree", 2},
                    {"parallelism.tensor_parallel_degree", 2},
                    {"activation_checkpoint", "FullAC.Config()"},
                    {"training.disable_cuda_graphs", true}};
  check_fields(Trainer::Torchtitan, "torchtitan-0.3.0.txt", base, python_of);
}

TEST_CASE("Every field of torchtitan 0.2 is honored, irrelevant or rejected by name",
          "[models][trainers]") {
  const Values base{{"parallelism.pipeline_parallel_degree", 2},
                    {"parallelism.tensor_parallel_degree", 2},
                    {"activation_checkpoint.mode", "full"}};
  check_fields(Trainer::TorchtitanToml, "torchtitan-0.2.2.txt", base, toml_of);
}

TEST_CASE("Every field of DeepSpeed 0.19 is honored, irrelevant or rejected by name",
          "[models][trainers]") {
  const Values base{{"/train_batch_size", 32},
                    {"/train_micro_batch_size_per_gpu", 2},
                    {"/gradient_accumulation_steps", 4},
                    {"/optimizer/type", "SGD"},
                    {"/fp16/enabled", true}};
  check_fields(Trainer::DeepSpeed, "deepspeed-0.19.8.txt", base, json_of);
}

TEST_CASE("A field that a trainer does not have is rejected", "[models][trainers]") {
  const auto refusal = [](Trainer trainer, const std::string& text) {
    return error_of([&] { assignments_of(trainer, text, "file"); });
  };
  CHECK(refusal(Trainer::TorchtitanToml,
                "[activation_checkpoint]\nmode = \"none\"\n[training]\nlocal_batchsize = 4\n") ==
        "file:4:19: training.local_batchsize: not a known field of torchtitan 0.2, did you mean "
        "\"training.local_batch_size\"?");
  CHECK(refusal(Trainer::DeepSpeed, R"({"train_batch_size": 8, "elasticity": {"enabled": true}})")
            .starts_with("file:1:40: /elasticity/enabled: not a known field of DeepSpeed 0.19"));
  CHECK(refusal(Trainer::Torchtitan,
                "def plan():\n    c = Trainer.Config(activation_checkpoint=None)\n"
                "    c.parallelism.expert_tensor_parallel_degree = 2\n    return c\n")
            .find("parallelism.expert_tensor_parallel_degree: not a known field of torchtitan "
                  "0.3") != std::string::npos);
}

}  // namespace trainer_fields_test
