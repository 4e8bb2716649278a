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
  schema.update(object_schema("A file that reproduces a run."));
  add(schema, "$schema", {{"description", "Path of this schema, for editors."}, {"type", "string"}},
      false);
  add(schema, "format",
      {{"description", "Kind and version of this file."}, {"const", "pipewright/scenario/1"}});
  add(schema, "name", {{"description", "Name of the run."}, {"type", "string"}});
  add(schema, "model",
      {{"description", "The model that is trained."}, {"oneOf", references_to_models()}});
  add(schema, "data", schema_of<DataSource>("The training data."));
  add(schema, "cluster",
      {{"description",
        "The machines, or the file that describes them, as `pipewright profile --links` writes it; "
        "relative to the folder of this file."},
       {"oneOf", {reference("cluster"), {{"type", "string"}, {"minLength", 1}}}}});
  add(schema, "pipeline", schema_of<Pipeline>("The parallel plan."));
  add(schema, "training", schema_of<Training>("The training."));
  add(schema, "profile",
      schema_of<ProfileSettings>(
          "How long a layer is measured: until the spread is small enough, within limits."),
      false);
  Json& definitions = schema["$defs"] = Json::object();
  for (const ModelDescriptor& model : model_kinds())
    definitions[model.kind] = model.schema();
  definitions.update(Json{
      {"cluster",
       schema_of<Cluster>("The machines. With more than one node, between_nodes is required.")},
      {"device", schema_of<Device>("One device; all are equal.")},
      {"fabric", schema_of<Fabric>("The network between groups of nodes.")},
      {"level", schema_of<LinkLevel>("A link beyond between_nodes. If it is shared, all transfers "
                                     "into or out of a group use one link.")},
      {"mixture", schema_of<Mixture>("Nodes with other devices than `device`.")},
      {"node_kind", schema_of<NodeKind>("Nodes of one kind.")},
      {"machine", schema_of<Machine>("Measured properties of the machine for analytic times; "
                                     "`pipewright calibrate` writes them.")},
      {"constants", schema_of<MachineConstants>("Constants of the machine.")},
      {"spread", schema_of<MachineSpread>("Uncertainty of the constants.")},
      {"reductions",
       schema_of<ReductionTable>("Measured all-reduces over the devices of a node, as columns.")},
      {"layer_class",
       schema_of<LayerClass>("Layers of one shape with the same tensor-parallel size.")},
      {"link", schema_of<Link>("A directed link: a transfer takes latency + bytes / bandwidth and "
                               "holds the link for bytes / bandwidth.")},
      {"segment", schema_of<LinkSegment>("A part of a link's curve.")}});
  return schema.dump(2) + "\n";
}

}  // namespace pipewright::plan
