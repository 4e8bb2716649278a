#include <filesystem>
#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "pipewright/trace/explain/job_explanation.hpp"
#include "pipewright/trace/hang/explain_hang.hpp"
#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::python {
namespace {

template <class Value>
void choose(Value& value, const std::optional<Value>& given) {
  if (given)
    value = *given;
}

/// Returns a plan with the command line's names for its figures.
nb::dict dict_of(const plan::TransformerTraining& training, const search::FoundPlan& found) {
  nb::dict dict;
  dict["iteration_s"] = found.iteration_s;
  dict["tokens_per_s"] = found.tokens_per_s;
  dict["mfu"] = found.mfu;
  dict["bubble"] = found.bubble;
  dict["memory_bytes"] = found.peak_bytes;
  dict["scenario"] =
      to_python(plan::to_json(search::scenario_of(found.cluster, training, found.cut)));
  return dict;
}

nb::list plans(const std::string& model, const std::string& cluster_file, int batch, int gpus,
               std::optional<int> sequence, const std::optional<std::vector<int>>& tensor,
               const std::optional<std::vector<int>>& pipeline,
               const std::optional<std::vector<int>>& zero,
               const std::optional<std::vector<std::string>>& schedules, int top,
               nb::handle progress) {
  const plan::Cluster cluster =
      with_nodes_for(plan::cluster_from_json(plan::JsonDocument::read(cluster_file)), gpus, "gpus");
  search::PlanSpace space{{}, models::transformer_named(model, sequence).training, gpus};
  space.training.batch = batch;
  choose(space.tensor, tensor);
  choose(space.pipeline, pipeline);
  choose(space.zero, zero);
  choose(space.schedules, schedules);
  search::PlanAnswer answer;
  run_long(progress, [&](const plan::ProgressCallback& continues) {
    answer = search::search_plans(
        cluster, space,
        {.most_plans = top,
         .progress = [&](std::size_t done, std::size_t of, const search::FoundPlan*) {
           return continues(done, of);
         }});
  });
  search::require_candidates(space, answer);
  nb::list found;
  for (const search::FoundPlan& each : answer.plans)
    found.append(dict_of(space.training, each));
  return found;
}

}  // namespace

void bind_plans(nb::module_& module) {
  module.def(
      "plans", &plans, nb::arg("model"), nb::kw_only(), nb::arg("cluster"), nb::arg("batch"),
      nb::arg("gpus"), nb::arg("sequence") = nb::none(), nb::arg("tensor") = nb::none(),
      nb::arg("pipeline") = nb::none(), nb::arg("zero") = nb::none(),
      nb::arg("schedules") = nb::none(), nb::arg("top") = 10, nb::arg("progress") = nb::none(),
      "Returns the fastest plans that fit into memory, best first. `model`: the name of a public "
      "model, a config.json of Hugging Face, or a file of Megatron-LM's arguments; `cluster`: a "
      "cluster's file; `batch`: samples of an iteration; the lists restrict the search. "
      "`progress(done, of)` is called from time to time; Ctrl-C ends the search. Each plan has "
      "iteration_s, tokens_per_s, mfu, bubble, memory_bytes and its scenario as a dictionary.");
  module.def(
      "explain",
      [](const std::vector<std::string>& files, std::optional<int> step, const std::string& axes,
         nb::handle progress) {
        plan::Json json;
        run_long(progress, [&](const plan::ProgressCallback& continues) {
          std::vector<std::string> problems;
          json = files.size() == 1 && trace::is_job_trace(files.front())
                     ? document_of(trace::explain_stragglers(files.front(), problems))
                     : to_json(trace::explain_traces({files.begin(), files.end()}, {step, axes},
                                                     problems, continues));
        });
        return to_python(json);
      },
      nb::arg("files"), nb::arg("step") = nb::none(), nb::kw_only(), nb::arg("axes") = "",
      nb::arg("progress") = nb::none(),
      "Explains where the time of a traced PyTorch pipeline goes, and what would save time; "
      "returns what `pipewright explain --json` prints. Takes one trace for each rank, or one of a "
      "whole job; `axes`, such as \"pipe=4,data=2\", is needed if the traces of several pipelines "
      "do not contain their layout. `progress(done, of)` is called from time to time and counts "
      "the files, plus one for the possible savings; Ctrl-C ends it.");
  module.def(
      "explain_hang",
      [](const std::vector<std::string>& dumps, const std::string& schedule) {
        plan::Json json;
        run_long(nb::none(), [&](const plan::ProgressCallback&) {
          json = to_json(trace::explain_hang({dumps.begin(), dumps.end()}, schedule));
        });
        return to_python(json);
      },
      nb::arg("dumps"), nb::arg("schedule") = "",
      "Finds the rank of a hanging torch job that diverged first, and which ranks wait for which; "
      "returns what `pipewright explain --hang --json` prints. `dumps`: dumps of FlightRecorder, "
      "one for each rank, or a folder of them; `schedule`: a file with the job's schedule.");
  module.def(
      "models", [] { return plan::known_transformers(); },
      "Returns the names of public models that `plans` knows.");
}

}  // namespace pipewright::python
