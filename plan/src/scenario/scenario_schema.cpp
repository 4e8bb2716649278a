#include "pipewright/plan/scenario/scenario_schema.hpp"

#include "pipewright/plan/json/field_schema.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "scenario_fields.hpp"

namespace pipewright::plan {
namespace {

void add(Json& object, const char* key, Json field, bool is_needed = true) {
  object["properties"][key] = std::move(field);
  if (is_needed)
    object["required"].push_back(key);
}

Json reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

Json references_to_models() {
  Json references = Json::array();
  for (const ModelDescriptor& model : model_kinds())
    references.push_back(reference(model.kind));
  return references;
}

}  // namespace

std::string scenario_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Pipewright scenario"}};
  schema.update(object_schema("One file that reproduces one run."));
  add(schema, "$schema",
      {{"description", "Where this schema lies, for editors."}, {"type", "string"}}, false);
  add(schema, "format",
      {{"description", "Kind and version of this file."}, {"const", "pipewright/scenario/1"}});
  add(schema, "name", {{"description", "What people call the run."}, {"type", "string"}});
  add(schema, "model", {{"description", "What is trained."}, {"oneOf", references_to_models()}});
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
  Json& definitions = schema["$defs"] = Json::object();
  for (const ModelDescriptor& model : model_kinds())
    definitions[model.kind] = model.schema();
  definitions.update(Json{
      {"cluster",
       schema_of<Cluster>("The machines. With more than one node, between_nodes is required.")},
      {"device", schema_of<Device>("One device; all are equal.")},
      {"fabric", schema_of<Fabric>("What joins groups of nodes.")},
      {"level",
       schema_of<LinkLevel>("A link further out than between_nodes. One that is shared is the "
                            "one way of a group out, and in, for all its transfers.")},
      {"mixture", schema_of<Mixture>("Nodes with other devices than `device`.")},
      {"node_kind", schema_of<NodeKind>("Nodes of one kind.")},
      {"machine", schema_of<Machine>("What was measured of the machine, for analytic times; "
                                     "`pipewright calibrate` writes it.")},
      {"constants", schema_of<MachineConstants>("Constants of the machine.")},
      {"spread", schema_of<MachineSpread>("How sure they are.")},
      {"reductions",
       schema_of<ReductionTable>("Measured sums over devices of a node, as columns.")},
      {"layer_class", schema_of<LayerClass>("Layers of one shape, cut one way.")},
      {"link", schema_of<Link>("A directed link: a transfer takes latency + bytes / bandwidth and "
                               "holds the link for bytes / bandwidth.")},
      {"segment", schema_of<LinkSegment>("A part of a link's curve.")}});
  return schema.dump(2) + "\n";
}

}  // namespace pipewright::plan
