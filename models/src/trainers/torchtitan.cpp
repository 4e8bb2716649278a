// torchtitan's TOML (torchtitan/config/job_config.py and distributed/pipeline_parallel.py of 0.2.2;
// from March 2026 on the same fields are set in Python). Its pipelines are torch's, its replicas
// are FSDP's or DDP's, and its tensor parallelism includes sequence parallelism.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/toml_fields.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models::trainer {
namespace {

/// Returns the names of a layer's modules in torchtitan's models.
std::vector<std::string> module_names(char letter, int block) {
  if (letter == 'E')
    return {"tok_embeddings"};
  if (letter == 'L')
    return {"norm", "output"};
  return {fmt::format("layers.{}", block)};
}

std::vector<std::vector<std::string>> modules_of_stages(const plan::Scenario& scenario) {
  std::vector<std::vector<std::string>> stages;
  int block = 0;
  for (const std::string& letters : layout_of(model_of(scenario), borders_of(scenario)).stages) {
    stages.emplace_back();
    for (const char letter : letters) {
      for (std::string& name : module_names(letter, block))
        stages.back().push_back(std::move(name));
      block += letter == 't' ? 1 : 0;
    }
  }
  return stages;
}

std::vector<std::string> unsupported_by_torchtitan(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  UnsupportedFields unsupported_fields;
  add_common(unsupported_fields, scenario);
  add_products(unsupported_fields, scenario);
  unsupported_fields.add_if(
      !find_layout_letters(model_of(scenario)),
      fmt::format("model.kind={}: its models are an embedding, blocks and a head",
                  scenario.model.kind()));
  unsupported_fields.add_if(torch_schedule(pipeline.schedule.name).empty(),
                            fmt::format("pipeline.schedule={}: torch has no class for this order",
                                        pipeline.schedule.name));
  unsupported_fields.add_if(
      pipeline.tensor > 1 && !pipeline.sequence_parallel,
      "pipeline.sequence_parallel=false: its tensor parallelism includes sequence parallelism");
  unsupported_fields.add_if(
      training.zero == 1 && pipeline.replicas > 1,
      "training.zero=1: it shards parameters and gradients as well (ZeRO 2 and 3)");
  unsupported_fields.add_if(training.zero == 0 && pipeline.context > 1,
                            "training.zero=0: with context parallelism, it shards parameters");
  unsupported_fields.add_if(
      training.recompute == plan::RecomputeMode::Selective,
      "training.recompute=selective: its selective mode recomputes other operators");
  unsupported_fields.add_if(training.optimizer != plan::Optimizer::AdamW,
                            fmt::format("training.optimizer={}: it supports Adam and AdamW",
                                        to_string(training.optimizer)));
  unsupported_fields.add_if(training.decayed != plan::Decayed::All,
                            "training.decayed=matrices: it decays all parameters");
  unsupported_fields.add_if(training.precision == plan::Precision::MixedHalf,
                            "training.precision=mixed-fp16: it supports bfloat16 and float32");
  return unsupported_fields.lines();
}

/// Formats a number as in JSON, which TOML can read.
std::string number(double value) { return plan::Json(value).dump(); }

std::string torchtitan_text(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  const int batch = training.microbatch_size * pipeline.microbatches;
  const bool shards = training.zero >= 2;
  std::string text = fmt::format(
      "# The plan of {}. torchtitan's own [model] name and flavor say the sizes.\n"
      "[training]\n"
      "local_batch_size = {}\n"
      "global_batch_size = {}\n"
      "seq_len = {}\n"
      "steps = {}\n"
      "max_norm = {}\n"
      "mixed_precision_param = \"{}\"\n",
      plan::Json(scenario.name).dump(), batch, batch * pipeline.replicas,
      sample_of(scenario.model).units, training.steps,
      training.clip_norm > 0 ? number(training.clip_norm) : "inf",
      is_mixed(training.precision) ? "bfloat16" : "float32");
  text += fmt::format(
      "\n[optimizer]\n"
      "name = \"AdamW\"\n"
      "lr = {}\nbeta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}\n",
      number(training.learning_rate), number(plan::adam_beta1), number(plan::adam_beta2),
      number(plan::adam_epsilon), number(training.weight_decay));
  text += fmt::format(
      "\n[parallelism]\n"
      "data_parallel_replicate_degree = {}\n"
      "data_parallel_shard_degree = {}\n"
      "fsdp_reshard_after_forward = \"{}\"\n"
      "tensor_parallel_degree = {}\n"
      "context_parallel_degree = {}\n"
      "expert_parallel_degree = {}\n"
      "pipeline_parallel_degree = {}\n"
      "pipeline_parallel_schedule = \"{}\"\n"
      "pipeline_parallel_microbatch_size = {}\n",
      shards ? 1 : pipeline.replicas, shards ? pipeline.replicas : 1,
      training.zero == 3 ? "always" : "never", pipeline.tensor, pipeline.context, pipeline.expert,
      pipeline.ranks, torch_schedule(pipeline.schedule.name), training.microbatch_size);
  text += "module_fqns_per_model_part = [\n";
  for (const auto& stage : modules_of_stages(scenario))
    text += fmt::format("  [\"{}\"],\n", fmt::join(stage, "\", \""));
  text += "]\n";
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n",
                      training.recompute == plan::RecomputeMode::Full ? "full" : "none");
  return text;
}

std::string our_schedule(TomlFields& fields) {
  const std::string field = "parallelism.pipeline_parallel_schedule";
  const std::string theirs = fields.text(field, "1F1B");
  for (const plan::ScheduleDescriptor& descriptor : plan::schedules()) {
    const std::string& name = descriptor.torch_class;
    // Their name may be in any case, and may have `Schedule` before it.
    if (!name.empty() && (same_letters(theirs, name) || same_letters(theirs, "Schedule" + name)))
      return descriptor.name;
  }
  fields.fault(field, fmt::format("{} is not a known torch schedule", theirs));
  return plan::default_schedule().name;
}

/// Returns the number of our layers in a list of modules: `norm` and `output` form one layer.
std::optional<int> layers_of(const std::vector<std::string>& modules, int& block) {
  int layers = 0;
  for (const std::string& module : modules) {
    if (module == "norm")
      continue;
    if (module.starts_with("layers.")) {
      if (module != fmt::format("layers.{}", block++))
        return {};
    } else if (module != "tok_embeddings" && module != "output") {
      return {};
    }
    ++layers;
  }
  return layers;
}

class TorchtitanReader {
 public:
  TorchtitanReader(std::string_view text, const std::string& name, int replicas)
      : fields_(text, name), replicas_(replicas) {}

  std::vector<std::string> run() {
    ranks_ = fields_.integer("parallelism.pipeline_parallel_degree", 1);
    set("pipeline.ranks", ranks_);
    read_schedule();
    read_parts();
    read_replicas();
    read_shards();
    read_batch();
    read_recompute();
    fields_.throw_if_any();
    return std::move(assignments_);
  }

 private:
  void set(const std::string& field, const plan::Json& value) {
    assignments_.push_back(assignment(field, value));
  }

  void read_schedule() {
    set("pipeline.schedule", our_schedule(fields_));
    const std::string csv = "parallelism.pipeline_parallel_schedule_csv";
    if (!fields_.text(csv, "").empty())
      fields_.fault(csv, "pass this file with --schedule instead");
  }

  void read_parts() {
    const std::string field = "parallelism.module_fqns_per_model_part";
    const auto parts = fields_.text_lists(field);
    if (!parts)
      return;
    std::vector<int> boundaries{0};
    int block = 0;
    for (const auto& part : *parts)
      if (const auto layers = layers_of(part, block))
        boundaries.push_back(boundaries.back() + *layers);
      else
        fields_.fault(field, fmt::format("[{}]: known here are tok_embeddings, layers.0 and so on "
                                         "in their order, norm and output",
                                         fmt::join(part, ", ")));
    const int stages = static_cast<int>(parts->size());
    if (stages == 0 || stages % ranks_ != 0)
      fields_.fault(field, fmt::format("{} parts do not divide among {} ranks", stages, ranks_));
    set("pipeline.partition", boundaries);
    set("pipeline.chunks", std::max(1, stages / ranks_));
  }

  /// A shard degree of -1, the default, means all remaining ranks.
  void read_replicas() {
    const std::string field = "parallelism.data_parallel_replicate_degree";
    const int copies = fields_.integer(field, 1);
    int shards = fields_.integer("parallelism.data_parallel_shard_degree", -1);
    if (shards < 0)
      shards = std::max(1, replicas_ / copies);
    if (copies > 1 && shards > 1)
      fields_.fault(field,
                    fmt::format("{} replicas of {} shards: a scenario supports only one of the two",
                                copies, shards));
    set("pipeline.replicas", copies * shards);
    const std::string reshard = fields_.text("parallelism.fsdp_reshard_after_forward", "default");
    // By default, a pipeline does not reshard parameters between its passes.
    const bool reshards = reshard == "always" || (reshard == "default" && ranks_ == 1);
    set("training.zero", shards == 1 ? 0 : reshards ? 3 : 2);
    if (shards > 1)  // gradients are reduced after each microbatch
      set("pipeline.overlap_reductions", true);
  }

  void read_shards() {
    const int tensor = fields_.integer("parallelism.tensor_parallel_degree", 1);
    set("pipeline.tensor", tensor);
    set("pipeline.sequence_parallel", tensor > 1);
    set("pipeline.context", fields_.integer("parallelism.context_parallel_degree", 1));
    set("pipeline.expert", fields_.integer("parallelism.expert_parallel_degree", 1));
  }

  void read_batch() {
    const int microbatch = fields_.integer("parallelism.pipeline_parallel_microbatch_size", 1);
    const int batch = fields_.integer("training.local_batch_size", 8);
    if (batch % microbatch != 0)
      fields_.fault("training.local_batch_size",
                    fmt::format("{} is not a multiple of pipeline_parallel_microbatch_size {}",
                                batch, microbatch));
    set("training.microbatch_size", microbatch);
    set("pipeline.microbatches", std::max(1, batch / microbatch));
  }

  void read_recompute() {
    const std::string field = "activation_checkpoint.mode";
    const std::string mode = fields_.text(field, "selective");
    if (mode == "none" || mode == "full")
      set("training.recompute", mode);
    else
      fields_.fault(
          field,
          fmt::format("\"{}\" (the default) is not supported by a scenario: use none or full",
                      mode));
  }

  TomlFields fields_;
  int replicas_;
  int ranks_ = 1;
  std::vector<std::string> assignments_;
};

std::vector<std::string> torchtitan_assignments(std::string_view text, const std::string& name,
                                                int replicas) {
  return TorchtitanReader(text, name, replicas).run();
}

}  // namespace

const Words& torchtitan() {
  static constexpr Words words{unsupported_by_torchtitan, torchtitan_text, torchtitan_assignments};
  return words;
}

}  // namespace pipewright::models::trainer
