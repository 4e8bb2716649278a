#include <filesystem>
#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "pipewright/loop/predict/predicted_plan.hpp"
#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/measured_scenario.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::python {
namespace {

/// A scenario that keeps the text it was read from, so that fields can be set as with `--set`.
class ScenarioValue {
 public:
  explicit ScenarioValue(plan::JsonDocument document)
      : document_(std::move(document)), scenario_(plan::scenario_from_json(document_)) {}

  static ScenarioValue read(const std::string& file) { return of(plan::JsonDocument::read(file)); }
  /// Reads the scenario together with the cluster file that it may name.
  static ScenarioValue of(plan::JsonDocument document) {
    if (const auto cluster = plan::cluster_file(document))
      plan::put_cluster(document, *cluster);
    return ScenarioValue(std::move(document));
  }
  ScenarioValue with(const std::vector<std::string>& assignments) const {
    plan::JsonDocument document = document_;
    for (const std::string& assignment : assignments)
      document.set(assignment);
    return ScenarioValue(std::move(document));
  }
  const plan::Scenario& scenario() const { return scenario_; }

 private:
  plan::JsonDocument document_;
  plan::Scenario scenario_;
};

/// Returns "pipeline.ranks=4" for {"pipeline.ranks": 4}.
std::vector<std::string> assignments_of(const nb::dict& fields) {
  std::vector<std::string> assignments;
  for (const auto& [field, value] : fields)
    assignments.push_back(nb::cast<std::string>(field) + "=" + to_json(value).dump());
  return assignments;
}

struct Predicted : loop::PredictedPlan {
  plan::Scenario scenario;
  plan::LayerCosts costs;

  plan::Json json() const {
    return loop::prediction_json(prediction, plan, costs,
                                 sim::throughput_of(scenario, plan, prediction.times.iteration),
                                 sim::device_memory(scenario, costs, plan, prediction.peaks));
  }
};

Predicted simulate(const ScenarioValue& value, const plan::LayerCosts& costs) {
  return {loop::predicted_plan(value.scenario(), costs), value.scenario(), costs};
}

std::string exported(const ScenarioValue& value, const std::string& trainer,
                     const plan::LayerCosts* costs) {
  const plan::Scenario& scenario = value.scenario();
  sim::sound_program(scenario);
  const bool is_named = !std::holds_alternative<std::string>(scenario.pipeline.partition);
  return models::trainer_file(models::trainer_of(trainer),
                              is_named || costs == nullptr
                                  ? scenario
                                  : sim::placed(scenario, sim::lay_out(scenario, *costs)));
}

void bind_scenario(nb::module_& module) {
  nb::class_<ScenarioValue>(module, "Scenario",
                            "Model, data, cluster, plan and training setup of one run.")
      .def(
          "__init__",
          [](ScenarioValue* self, const nb::dict& fields) {
            new (self) ScenarioValue(
                ScenarioValue::of(plan::JsonDocument::parse(to_json(fields).dump(), "scenario")));
          },
          nb::arg("fields"),
          "Makes a scenario from a dictionary with the contents of a scenario file. Raises "
          "InputError.")
      .def_static(
          "read", &ScenarioValue::read, nb::arg("file"),
          "Reads a scenario file. Raises InputError that names every error with line and column.")
      .def_static(
          "of",
          [](const plan::LayerCosts& costs, int ranks) {
            return ScenarioValue(plan::JsonDocument::parse(
                plan::to_json(plan::measured_scenario(costs, "measured", ranks)).dump(),
                "scenario"));
          },
          nb::arg("costs"), nb::kw_only(), nb::arg("ranks"),
          "Makes a scenario for layers of which only these costs are known, such as those measured "
          "by pipewright.torch.profile, on `ranks` devices with unlimited memory. It is "
          "partitioned by the costs unless a partition is set.")
      .def(
          "set",
          [](const ScenarioValue& self, const nb::dict& fields) {
            return self.with(assignments_of(fields));
          },
          nb::arg("fields"),
          "Returns the scenario with these fields set, by their names in the file: "
          "{\"pipeline.ranks\": 4, \"training.zero\": 1}.")
      .def(
          "cut_as",
          [](const ScenarioValue& self, const std::string& file) {
            return self.with(models::read_assignments(file, models::cut_context(self.scenario())));
          },
          nb::arg("file"),
          "Returns the scenario with the parallelism of another trainer's file: Megatron-LM's "
          "arguments, torchtitan's Python or TOML, DeepSpeed's JSON.")
      .def("export", &exported, nb::arg("trainer"), nb::arg("costs") = nb::none(), WithoutLock(),
           "Returns the plan as settings of \"megatron\", \"torchtitan\", \"torchtitan-0.2\" or "
           "\"deepspeed\". "
           "`costs`: layer costs, needed if the scenario does not contain the boundaries of its "
           "stages. Raises Infeasible that names each field that the trainer cannot express.")
      .def("to_dict",
           [](const ScenarioValue& self) { return to_python(plan::to_json(self.scenario())); })
      .def_prop_ro(
          "layers",
          [](const ScenarioValue& self) {
            std::vector<std::string> names;
            for (const plan::Layer& layer : plan::model_of(self.scenario()).layers)
              names.push_back(layer.name);
            return names;
          },
          "The names of its model's layers, in order.")
      .def("__eq__", [](const ScenarioValue& self,
                        const ScenarioValue& other) { return self.scenario() == other.scenario(); })
      .def("__repr__",
           [](const ScenarioValue& self) { return "Scenario \"" + self.scenario().name + "\""; });
}

void bind_costs(nb::module_& module) {
  nb::class_<plan::LayerCosts>(
      module, "LayerCosts",
      "The costs of each layer of a model for one microbatch: seconds and bytes.")
      .def(
          "__init__",
          [](plan::LayerCosts* self, const nb::dict& fields) {
            new (self) plan::LayerCosts(plan::layer_costs_from_json(
                plan::JsonDocument::parse(to_json(fields).dump(), "costs")));
          },
          nb::arg("fields"))
      .def_static(
          "read",
          [](const std::string& file) {
            return plan::layer_costs_from_json(plan::JsonDocument::read(file));
          },
          nb::arg("file"), "Reads a file of `pipewright profile -o FILE`.")
      .def(
          "save",
          [](const plan::LayerCosts& self, const std::string& file) {
            plan::write_file(file, plan::to_json(self).dump(2) + "\n");
          },
          nb::arg("file"), "Writes a file as `pipewright profile -o FILE` does.")
      .def("to_dict", [](const plan::LayerCosts& self) { return to_python(plan::to_json(self)); });
}

void bind_prediction(nb::module_& module) {
  nb::class_<Predicted>(module, "Prediction", "One iteration as the simulator predicts it.")
      .def_prop_ro("iteration_s",
                   [](const Predicted& self) { return self.prediction.times.iteration; })
      .def_prop_ro(
          "boundaries", [](const Predicted& self) { return self.plan.partition.boundaries; },
          "The first layer of each stage, followed by the number of layers.")
      .def_prop_ro("timeline", [](const Predicted& self) { return self.prediction.timeline; })
      .def_prop_ro("schedule", [](const Predicted& self) { return self.plan.schedule; })
      .def_prop_ro("program", [](const Predicted& self) { return self.plan.program(); })
      .def(
          "to_dict", [](const Predicted& self) { return to_python(self.json()); },
          "Returns what `pipewright simulate --json` prints.")
      .def("_repr_svg_", [](nb::handle self) { return self.attr("timeline").attr("to_svg")(); });
}

}  // namespace

void bind_scenarios(nb::module_& module) {
  bind_costs(module);
  bind_scenario(module);
  bind_prediction(module);
  module.def("torch_schedule", &models::torch_schedule, nb::arg("schedule"),
             "Returns the class of torch.distributed.pipelining with this order, such as "
             "\"Interleaved1F1B\"; empty if torch has none.");
  module.def("simulate", &simulate, nb::arg("scenario"), nb::arg("costs"), WithoutLock(),
             "Predicts time, idle time and memory of one iteration. Raises InputError for costs of "
             "another model, Infeasible for a deadlock or too little memory.");
}

}  // namespace pipewright::python
