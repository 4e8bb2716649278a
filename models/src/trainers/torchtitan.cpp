// Writes torchtitan's configurations: a Python function for 0.3 (torchtitan/trainer.py), and TOML
// for 0.2 (torchtitan/config/job_config.py). Its pipelines are torch's, its replicas are FSDP's or
// DDP's. Without a pipeline, it runs forward and backward of each microbatch in turn.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/torchtitan_fields.hpp"
#include "trainers/torchtitan_reader.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models::trainer {
namespace {

using enum TorchtitanVersion;

std::vector<std::vector<std::string>> modules_of_stages(const plan::Scenario& scenario,
                                                        TorchtitanVersion version) {
  std::vector<std::vector<std::string>> stages;
  int block = 0;
  for (const std::string& letters : layout_of(model_of(scenario), borders_of(scenario)).stages) {
    std::vector<std::string>& modules = stages.emplace_back();
    for (const char letter : letters) {
      if (letter == 'E')
        modules.emplace_back("tok_embeddings");
      else if (letter == 'L')
        modules.insert(modules.end(), {"norm", version == V02 ? "output" : "lm_head"});
      else
        modules.push_back(fmt::format("layers.{}", block++));
    }
  }
  return stages;
}

void add_of_pipeline(UnsupportedFields& lines, const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const std::string& schedule = pipeline.schedule.name;
  const std::string& in_turn = plan::default_schedule().name;
  lines.add_if(torch_schedule(schedule).empty(),
               fmt::format("pipeline.schedule={}: torch has no class for this order", schedule));
  lines.add_if(
      pipeline.ranks == 1 && schedule != in_turn && !torch_schedule(schedule).empty(),
      fmt::format("pipeline.schedule={}: without a pipeline, its order is {}", schedule, in_turn));
  lines.add_if(
      pipeline.ranks == 1 && pipeline.chunks > 1,
      fmt::format("pipeline.chunks={}: without a pipeline, there is one stage", pipeline.chunks));
}

/// Adds the features that only one of the versions lacks.
void add_of_version(UnsupportedFields& lines, const plan::Scenario& scenario,
                    TorchtitanVersion version) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  lines.add_if(
      version == V02 && pipeline.tensor > 1 && !pipeline.sequence_parallel,
      "pipeline.sequence_parallel=false: its tensor parallelism includes sequence parallelism");
  lines.add_if(version == V02 && is_mixed(training.precision) && training.zero < 2 &&
                   (pipeline.ranks > 1 || pipeline.tensor > 1),
               "training.precision=mixed: without sharded parameters, its pipelines and tensor "
               "parallelism compute in float32");
  lines.add_if(version == V03 && training.cuda_graphs && pipeline.ranks > 1,
               "training.cuda_graphs=true: its pipelines do not run as CUDA graphs");
}

std::vector<std::string> unsupported_by(const plan::Scenario& scenario, TorchtitanVersion version) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  UnsupportedFields lines;
  add_common(lines, scenario);
  add_products(lines, scenario);
  const auto letters = find_layout_letters(model_of(scenario));
  lines.add_if(!letters || letters->find('m') != letters->npos,
               fmt::format("model.kind={}: its models are an embedding, blocks and a head",
                           scenario.model.kind()));
  add_of_pipeline(lines, scenario);
  add_of_version(lines, scenario, version);
  lines.add_if(training.zero == 1 && pipeline.replicas > 1,
               "training.zero=1: it shards parameters and gradients as well (ZeRO 2 and 3)");
  lines.add_if(training.zero == 0 && pipeline.context > 1,
               "training.zero=0: with context parallelism, it shards parameters");
  lines.add_if(training.recompute == plan::RecomputeMode::Selective,
               "training.recompute=selective: its selective mode recomputes other operators");
  lines.add_if(training.optimizer != plan::Optimizer::AdamW,
               fmt::format("training.optimizer={}: it supports Adam and AdamW",
                           to_string(training.optimizer)));
  lines.add_if(training.decayed != plan::Decayed::All,
               "training.decayed=matrices: it decays all parameters");
  lines.add_if(training.precision == plan::Precision::MixedHalf,
               "training.precision=mixed-fp16: it supports bfloat16 and float32");
  lines.add_if(training.precision == plan::Precision::Mixed && !training.fp32_gradients,
               "training.fp32_gradients=false: it accumulates and reduces gradients in float32");
  return lines.lines();
}

/// Formats a number as in JSON, which TOML and Python can read.
std::string number(double value) { return plan::Json(value).dump(); }

std::string quoted(const std::string& text) { return plan::Json(text).dump(); }

/// A section's fields with their values as text.
using Section = std::vector<std::pair<std::string, std::string>>;

Section training_section(const plan::Scenario& scenario, TorchtitanVersion version) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  // A pipeline divides the local batch into microbatches. Without one, batches are accumulated.
  const int all = training.microbatch_size * pipeline.microbatches;
  Section section{
      {"local_batch_size", std::to_string(pipeline.ranks > 1 ? all : training.microbatch_size)},
      {"global_batch_size", std::to_string(all * pipeline.replicas)},
      {"seq_len", std::to_string(sample_of(scenario.model).units)},
      {"steps", std::to_string(training.steps)},
      {"max_norm", training.clip_norm > 0 ? number(training.clip_norm)
                   : version == V02       ? "inf"
                                          : "float(\"inf\")"},
      {"mixed_precision_param", quoted(is_mixed(training.precision) ? "bfloat16" : "float32")}};
  if (version == V03)
    section.emplace_back(
        "disable_cuda_graphs",
        pipeline.ranks > 1 || pipeline.expert > 1 || !training.cuda_graphs ? "True" : "False");
  return section;
}

std::string stages_text(const plan::Scenario& scenario, TorchtitanVersion version) {
  const std::string indent = version == V02 ? "" : "        ";
  std::string text = "[\n";
  for (const auto& stage : modules_of_stages(scenario, version))
    text += fmt::format("{}  {}[\"{}\"],\n", indent, version == V02 ? "" : "  ",
                        fmt::join(stage, "\", \""));
  return text + indent + "]";
}

Section parallelism_section(const plan::Scenario& scenario, TorchtitanVersion version) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  const bool shards = training.zero >= 2;
  Section section{
      {"data_parallel_replicate_degree", std::to_string(shards ? 1 : pipeline.replicas)},
      {"data_parallel_shard_degree", std::to_string(shards ? pipeline.replicas : 1)},
      {"fsdp_reshard_after_forward", quoted(training.zero == 3 ? "always" : "never")},
      {"tensor_parallel_degree", std::to_string(pipeline.tensor)},
      {"context_parallel_degree", std::to_string(pipeline.context)},
      {"expert_parallel_degree", std::to_string(pipeline.expert)},
      {"pipeline_parallel_degree", std::to_string(pipeline.ranks)},
      {"pipeline_parallel_schedule", quoted(torch_schedule(pipeline.schedule.name))},
      {"pipeline_parallel_microbatch_size", std::to_string(training.microbatch_size)}};
  if (version == V03 && pipeline.tensor > 1)
    section.emplace_back("enable_sequence_parallel", pipeline.sequence_parallel ? "True" : "False");
  if (pipeline.ranks > 1)
    section.emplace_back("module_fqns_per_model_part", stages_text(scenario, version));
  return section;
}

std::string toml_of(const std::string& name, const Section& section) {
  std::string text = fmt::format("\n[{}]\n", name);
  for (const auto& [field, value] : section)
    text += fmt::format("{} = {}\n", field, value);
  return text;
}

std::string toml_text(const plan::Scenario& scenario) {
  const plan::Training& training = scenario.training;
  return fmt::format("# The plan of {} for torchtitan 0.2. Add [model] with name and flavor.\n",
                     quoted(scenario.name)) +
         toml_of("training", training_section(scenario, V02)) +
         toml_of("optimizer", {{"name", "\"AdamW\""},
                               {"lr", number(training.learning_rate)},
                               {"beta1", number(plan::adam_beta1)},
                               {"beta2", number(plan::adam_beta2)},
                               {"eps", number(plan::adam_epsilon)},
                               {"weight_decay", number(training.weight_decay)}}) +
         toml_of("parallelism", parallelism_section(scenario, V02)) +
         toml_of(
             "activation_checkpoint",
             {{"mode", training.recompute == plan::RecomputeMode::Full ? "\"full\"" : "\"none\""}});
}

std::string python_of(const std::string& name, const std::string& type, const Section& section) {
  std::string text = fmt::format("    config.{} = {}(\n", name, type);
  for (const auto& [field, value] : section)
    text += fmt::format("        {}={},\n", field, value);
  return text + "    )\n";
}

/// Returns torchtitan's configuration of a model with the scenario's sizes, or one to be replaced.
std::string llama_config(const plan::Scenario& scenario) {
  const auto* const shape = scenario.model.find<plan::TransformerShape>();
  const auto has = [&](int layers, int hidden) {
    return shape != nullptr && shape->config.layers == layers && shape->config.kv_heads == 8 &&
           shape->config.heads * shape->config.head_channels == hidden;
  };
  return has(32, 4096) ? "llama3_8b" : has(80, 8192) ? "llama3_70b" : "llama3_debugmodel";
}

std::string python_text(const plan::Scenario& scenario) {
  const plan::Training& training = scenario.training;
  const bool recomputes = training.recompute == plan::RecomputeMode::Full;
  const auto blocks = std::ranges::count(layout_letters(model_of(scenario)), 't');
  return fmt::format(
             "# The plan of {} for torchtitan 0.3. With this folder in PYTHONPATH:\n"
             "# torchrun … -m torchtitan.train --module torchtitan_plan --config plan\n"
             "from torchtitan.components.optimizer import default_adamw\n"
             "from torchtitan.config import ParallelismConfig, TrainingConfig\n"
             "{}from torchtitan.models.llama3.config_registry import {} as model  # yours\n\n\n"
             "def plan():\n"
             "    config = model()\n"
             "    assert len(config.model_spec.model.layers) == {}, \"import another model\"\n",
             quoted(scenario.name),
             recomputes ? "from torchtitan.distributed.activation_checkpoint import FullAC\n" : "",
             llama_config(scenario), blocks) +
         python_of("training", "TrainingConfig", training_section(scenario, V03)) +
         python_of("optimizer", "default_adamw",
                   {{"lr", number(training.learning_rate)},
                    {"betas",
                     fmt::format("({}, {})", number(plan::adam_beta1), number(plan::adam_beta2))},
                    {"eps", number(plan::adam_epsilon)},
                    {"weight_decay", number(training.weight_decay)}}) +
         python_of("parallelism", "ParallelismConfig", parallelism_section(scenario, V03)) +
         fmt::format("    config.activation_checkpoint = {}\n    return config\n",
                     recomputes ? "FullAC.Config()" : "None");
}

std::vector<std::string> read_python(std::string_view text, const std::string& name,
                                     const CutContext& context) {
  return torchtitan_assignments(python_fields(text, name, context.function), V03, context);
}

std::vector<std::string> read_toml(std::string_view text, const std::string& name,
                                   const CutContext& context) {
  return torchtitan_assignments(toml_fields(text, name), V02, context);
}

}  // namespace

const Words& torchtitan() {
  static constexpr Words words{
      [](const plan::Scenario& scenario) { return unsupported_by(scenario, V03); }, python_text,
      read_python};
  return words;
}

const Words& torchtitan_toml() {
  static constexpr Words words{
      [](const plan::Scenario& scenario) { return unsupported_by(scenario, V02); }, toml_text,
      read_toml};
  return words;
}

}  // namespace pipewright::models::trainer
