#include "pipewright/plan/scenario/scenario_schema.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "scenario_fields.hpp"

namespace pipewright::plan {
namespace {

using Ordered = nlohmann::ordered_json;  // a reader of the file wants the order of this page

template <class Value>
Ordered type_schema(const FieldRule& rule) {
  if (rule.schema != nullptr)
    return Ordered::parse(rule.schema);
  if constexpr (std::is_same_v<Value, bool>)
    return {{"type", "boolean"}};
  if constexpr (std::is_same_v<Value, std::string> || std::is_enum_v<Value>) {
    Ordered text{{"type", "string"}};
    if (rule.words != nullptr)
      text["enum"] = *rule.words;
    return text;
  }
  if constexpr (std::is_same_v<Value, std::vector<double>>)
    return {{"type", "array"}, {"items", type_schema<double>(rule)}};
  const bool whole = std::is_same_v<Value, int> || std::is_same_v<Value, Bytes>;
  Ordered number{{"type", whole ? "integer" : "number"}};
  const bool counts = std::is_same_v<Value, Bytes> || std::is_same_v<Value, Seconds>;
  const Range range = counts ? at_least(0) : rule.range;
  const auto add = [&](const char* key, double bound) {
    if (std::isfinite(bound) && bound == std::floor(bound))
      number[key] = static_cast<std::int64_t>(bound);
    else if (std::isfinite(bound))
      number[key] = bound;
  };
  add(range.excludes_least ? "exclusiveMinimum" : "minimum", range.least);
  add("maximum", range.most);
  return number;
}

Ordered object_schema(const char* meaning) {
  return {{"description", meaning},
          {"type", "object"},
          {"properties", Ordered::object()},
          {"required", Ordered::array()},
          {"additionalProperties", false}};
}

/// Adds the fields of a plain struct, its values as their defaults.
template <class Struct>
void add_fields(Ordered& object) {
  const Struct plain{};
  visit_fields(plain,
               [&](const char* key, const auto& value, const FieldRule& rule, const char* meaning) {
                 using Value = std::remove_cvref_t<decltype(value)>;
                 Ordered field = Ordered::object();
                 if (*meaning != '\0')
                   field["description"] = meaning;
                 field.update(type_schema<Value>(rule));
                 if (rule.needed)
                   object["required"].push_back(key);
                 else if constexpr (!HasFields<Value> && !IsOptionalWithFields<Value>::value)
                   field["default"] = Ordered(field_json(value, rule));
                 object["properties"][key] = std::move(field);
               });
}

template <class Struct>
Ordered schema_of(const char* meaning) {
  Ordered object = object_schema(meaning);
  add_fields<Struct>(object);
  return object;
}

template <class Struct>
Ordered model_schema(const char* kind, const char* meaning) {
  Ordered object = object_schema(meaning);
  object["properties"]["kind"] = {{"const", kind}};
  object["required"].push_back("kind");
  add_fields<Struct>(object);
  return object;
}

void add(Ordered& object, const char* key, Ordered field, bool is_needed = true) {
  object["properties"][key] = std::move(field);
  if (is_needed)
    object["required"].push_back(key);
}

Ordered reference(const char* name) { return {{"$ref", std::string("#/$defs/") + name}}; }

}  // namespace

std::string scenario_schema() {
  Ordered schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Pipewright scenario"}};
  schema.update(object_schema("One file that reproduces one run."));
  add(schema, "$schema",
      {{"description", "Where this schema lies, for editors."}, {"type", "string"}}, false);
  add(schema, "format",
      {{"description", "Kind and version of this file."}, {"const", "pipewright/scenario/1"}});
  add(schema, "name", {{"description", "What people call the run."}, {"type", "string"}});
  add(schema, "model",
      {{"description", "What is trained."}, {"oneOf", {reference("gpt"), reference("alexnet")}}});
  add(schema, "data", schema_of<DataSource>("What it learns from."));
  add(schema, "cluster",
      {{"description",
        "The machines, or the file that says them, as `pipewright profile --links` writes it; "
        "relative to the folder of this file."},
       {"oneOf", {reference("cluster"), {{"type", "string"}, {"minLength", 1}}}}});
  add(schema, "pipeline", schema_of<Pipeline>("The parallel plan."));
  add(schema, "training", schema_of<Training>("How it is trained."));
  add(schema, "profile",
      schema_of<ProfileSettings>(
          "How long a layer is measured: until the spread is small enough, within bounds."),
      false);
  schema["$defs"] = {
      {"gpt", model_schema<GptShape>("gpt", "A GPT of pre-norm blocks over the bytes of a text.")},
      {"alexnet", model_schema<AlexNetShape>("alexnet", "AlexNet in 22 layers.")},
      {"cluster",
       schema_of<Cluster>("The machines. With more than one node, between_nodes is required.")},
      {"device", schema_of<Device>("One device; all are equal.")},
      {"machine", schema_of<Machine>("What was measured of the machine, for analytic times; "
                                     "`pipewright calibrate` writes it.")},
      {"constants", schema_of<MachineConstants>("Constants of the machine.")},
      {"spread", schema_of<MachineSpread>("How sure they are.")},
      {"reductions",
       schema_of<ReductionTable>("Measured sums over devices of a node, as columns.")},
      {"layer_class", schema_of<LayerClass>("Layers of one shape, cut one way.")},
      {"link", schema_of<Link>("A directed link: a transfer takes latency + bytes / bandwidth and "
                               "holds the link for bytes / bandwidth.")},
      {"segment", schema_of<LinkSegment>("A part of a link's curve.")}};
  return schema.dump(2) + "\n";
}

}  // namespace pipewright::plan
