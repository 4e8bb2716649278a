// DeepSpeed's pipeline engine (deepspeed/runtime/pipe/engine.py and runtime/config.py of 0.19.8):
// 1F1B, one stage per rank, ZeRO 0 and 1. It stores the `pipeline` section but ignores `stages` and
// `partition`, which are for the code that creates the PipelineModule.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "trainers/deepspeed_fields.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models::trainer {
namespace {

std::vector<std::string> unsupported_by_deepspeed(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  UnsupportedFields unsupported_fields;
  add_common(unsupported_fields, scenario);
  add_products(unsupported_fields, scenario);
  unsupported_fields.add_if(
      !descriptor_of(pipeline.schedule).runs_in_deepspeed,
      fmt::format("pipeline.schedule={}: its engine runs {}", pipeline.schedule.name,
                  plan::listed_schedules(&plan::ScheduleDescriptor::runs_in_deepspeed)));
  unsupported_fields.add_if(
      pipeline.chunks > 1,
      fmt::format("pipeline.chunks={}: a rank has one stage", pipeline.chunks));
  unsupported_fields.add_if(
      pipeline.tensor > 1,
      fmt::format("pipeline.tensor={}: tensor parallelism is left to the model", pipeline.tensor));
  unsupported_fields.add_if(
      pipeline.context > 1,
      fmt::format("pipeline.context={}: its pipeline has no context parallelism",
                  pipeline.context));
  unsupported_fields.add_if(
      pipeline.expert > 1,
      fmt::format("pipeline.expert={}: expert parallelism is left to the model", pipeline.expert));
  unsupported_fields.add_if(
      training.zero > 1,
      fmt::format("training.zero={}: its pipeline supports ZeRO 0 and 1", training.zero));
  unsupported_fields.add_if(training.recompute == plan::RecomputeMode::Selective,
                            "training.recompute=selective: it recomputes whole layers");
  unsupported_fields.add_if(training.decayed != plan::Decayed::All,
                            "training.decayed=matrices: groups of parameters are made in Python");
  return unsupported_fields.lines();
}

plan::Json optimizer_json(const plan::Training& training) {
  plan::Json parameters{{"lr", training.learning_rate}, {"weight_decay", training.weight_decay}};
  if (training.optimizer == plan::Optimizer::AdamW) {
    parameters["betas"] = {plan::adam_beta1, plan::adam_beta2};
    parameters["eps"] = plan::adam_epsilon;
    return {{"type", "AdamW"}, {"params", parameters}};
  }
  parameters["momentum"] =
      training.optimizer == plan::Optimizer::SgdMomentum ? plan::sgd_momentum : 0.0;
  return {{"type", "SGD"}, {"params", parameters}};
}

std::string deepspeed_text(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  plan::Json json{
      {"train_micro_batch_size_per_gpu", training.microbatch_size},
      {"gradient_accumulation_steps", pipeline.microbatches},
      {"train_batch_size", training.microbatch_size * pipeline.microbatches * pipeline.replicas},
      {"gradient_clipping", training.clip_norm},
      {"zero_optimization", {{"stage", training.zero}}},
      {"optimizer", optimizer_json(training)},
      {"pipeline",
       {{"stages", pipeline.ranks},
        {"partition", borders_of(scenario)},
        {"activation_checkpoint_interval",
         training.recompute == plan::RecomputeMode::Full ? 1 : 0}}}};
  json["bf16"] = {{"enabled", training.precision == plan::Precision::Mixed}};
  json["fp16"] = {{"enabled", training.precision == plan::Precision::MixedHalf}};
  if (training.precision == plan::Precision::MixedHalf)
    json["fp16"]["loss_scale"] = training.loss_scale;
  if (is_mixed(training.precision))
    json["data_types"] = {{"grad_accum_dtype", training.fp32_gradients ? "fp32"
                                               : training.precision == plan::Precision::MixedHalf
                                                   ? "fp16"
                                                   : "bf16"}};
  return json.dump(2) + "\n";
}

/// Reads the fields that determine a plan, and rejects those whose effect is not predicted.
class DeepSpeedReader {
 public:
  DeepSpeedReader(const plan::JsonDocument& document, int replicas)
      : document_(document), diagnostics_(document), replicas_(replicas) {}

  std::vector<std::string> run() {
    check_fields(document_.root(), "");
    read_batch();
    read_numbers();
    read_pipeline();
    read_precision();
    diagnostics_.throw_if_any();
    return std::move(assignments_);
  }

 private:
  const plan::Json* find(const std::string& pointer) const {
    const plan::Json::json_pointer at(pointer);
    return document_.root().contains(at) ? &document_.root().at(at) : nullptr;
  }
  void set(const std::string& field, const plan::Json& value) {
    assignments_.push_back(assignment(field, value));
  }
  bool flag(const std::string& pointer) const {
    const plan::Json* const value = find(pointer);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  void check_fields(const plan::Json& object, const std::string& pointer) {
    for (const auto& [key, value] : object.items()) {
      const std::string field = (plan::Json::json_pointer(pointer) / key).to_string();
      if (value.is_object())
        check_fields(value, field);
      else if (const auto fault =
                   value == "auto" ? std::optional<std::string>()
                                   : rule_fault(deepspeed_rules(), field, &value, "DeepSpeed 0.19"))
        diagnostics_.add(field, *fault);
    }
  }

  bool is_auto(const std::string& pointer) const {
    const plan::Json* const value = find(pointer);
    return value != nullptr && *value == "auto";
  }
  /// Returns 0 if the value is missing or "auto".
  int size(const std::string& pointer, const std::string& field) {
    const int value = integer(pointer, 1);
    if (value > 0)
      set(field, value);
    return value;
  }
  int integer(const std::string& pointer, int least) {
    const plan::Json* const value = find(pointer);
    if (value == nullptr || *value == "auto")
      return 0;
    if (value->is_number_integer() && *value >= least && *value <= 1'000'000'000)
      return value->get<int>();
    diagnostics_.add(pointer, fmt::format("a whole number of at least {} is needed here", least));
    return 0;
  }

  /// Batch, microbatch and number of microbatches: DeepSpeed computes those that are missing.
  /// "auto" is filled in by other programs, and keeps the scenario's value here.
  void read_batch() {
    const std::string fields[]{"/train_batch_size", "/train_micro_batch_size_per_gpu",
                               "/gradient_accumulation_steps"};
    const std::int64_t batch = integer(fields[0], 1);
    std::int64_t microbatch = integer(fields[1], 1);
    std::int64_t microbatches = integer(fields[2], 1);
    const bool has_auto = is_auto(fields[0]) || is_auto(fields[1]) || is_auto(fields[2]);
    if (!has_auto && find(fields[0]) == nullptr && find(fields[1]) == nullptr)
      return diagnostics_.add("", "train_batch_size or train_micro_batch_size_per_gpu is needed");
    const bool is_complete = microbatch > 0 && microbatches > 0;
    if (!has_auto && microbatches == 0)
      microbatches = batch == 0 || microbatch == 0 ? 1 : batch / microbatch / replicas_;
    if (!has_auto && microbatch == 0)
      microbatch = batch / replicas_ / microbatches;
    const std::int64_t pipeline = microbatch * microbatches;
    if (batch > 0 && !has_auto) {
      if (pipeline == 0 || batch % pipeline != 0 || (!is_complete && batch != pipeline * replicas_))
        diagnostics_.add(
            fields[0],
            fmt::format("{} is not a multiple of train_micro_batch_size_per_gpu {} times "
                        "gradient_accumulation_steps {}{}",
                        batch, microbatch, microbatches,
                        is_complete ? std::string() : fmt::format(" on {} replicas", replicas_)));
      else
        replicas_ = static_cast<int>(batch / pipeline);
    }
    if (microbatch > 0)
      set("training.microbatch_size", microbatch);
    if (microbatches > 0)
      set("pipeline.microbatches", microbatches);
    set("pipeline.replicas", replicas_);
  }

  void read_numbers() {
    const int zero = integer("/zero_optimization/stage", 0);
    if (zero > 1)
      diagnostics_.add("/zero_optimization/stage",
                       "its pipeline engine supports ZeRO 0 and 1 (it rejects ZeRO 2 and 3)");
    set("training.zero", zero);
    if (find("/gradient_clipping") == nullptr)
      set("training.clip_norm", 1.0);  // its default
    for (const auto& [pointer, field] :
         {std::pair{"/gradient_clipping", "training.clip_norm"},
          std::pair{"/optimizer/params/lr", "training.learning_rate"},
          std::pair{"/optimizer/params/weight_decay", "training.weight_decay"}}) {
      const plan::Json* const value = find(pointer);
      if (value == nullptr || *value == "auto")
        continue;
      if (value->is_number() && *value >= 0)
        set(field, *value);
      else
        diagnostics_.add(pointer, "a number of at least 0 is needed here");
    }
    read_optimizer();
  }

  void read_optimizer() {
    const plan::Json* const type = find("/optimizer/type");
    if (type == nullptr)
      return;
    const plan::Json* const momentum = find("/optimizer/params/momentum");
    if (*type == "AdamW" || *type == "Adam")
      set("training.optimizer", "adamw");
    else if (*type == "SGD")
      set("training.optimizer",
          momentum != nullptr && momentum->is_number() && *momentum > 0 ? "sgd-momentum" : "sgd");
    else
      diagnostics_.add(
          "/optimizer/type",
          fmt::format("{} is not an optimizer of a scenario (possible: AdamW, Adam, SGD)",
                      type->dump()));
  }

  void read_pipeline() {
    set("pipeline.schedule",
        plan::schedule_names(&plan::ScheduleDescriptor::runs_in_deepspeed).front());
    set("pipeline.chunks", 1);
    const int stages = size("/pipeline/stages", "pipeline.ranks");
    const plan::Json* const partition = find("/pipeline/partition");
    if (partition != nullptr && partition->is_array())
      read_boundaries(*partition, stages);
    else if (partition != nullptr && *partition != "best" && *partition != "auto")
      diagnostics_.add("/pipeline/partition",
                       "the engine does not read it: write the first layer of each stage and the "
                       "number of layers, or leave it out");
    const int interval = integer("/pipeline/activation_checkpoint_interval", 0);
    if (interval > 1)
      diagnostics_.add(
          "/pipeline/activation_checkpoint_interval",
          fmt::format("{}: a scenario recomputes each layer separately (1) or none (0)", interval));
    set("training.recompute", interval > 0 ? "full" : "none");
  }

  void read_boundaries(const plan::Json& partition, int stages) {
    const auto are_whole = std::ranges::all_of(
        partition, [](const plan::Json& each) { return each.is_number_integer() && each >= 0; });
    if (!are_whole || (stages > 0 && partition.size() != static_cast<std::size_t>(stages) + 1))
      diagnostics_.add("/pipeline/partition",
                       fmt::format("the first layer of each of {} stages and the number of layers "
                                   "are needed here",
                                   stages > 0 ? std::to_string(stages) : "the"));
    else
      set("pipeline.partition", partition);
  }

  void read_precision() {
    const bool half = flag("/fp16/enabled");
    const bool brain = flag("/bf16/enabled") || flag("/bfloat16/enabled");
    if (half && brain)
      diagnostics_.add("/fp16/enabled", "/bf16/enabled is true as well");
    set("training.precision", half ? "mixed-fp16" : brain ? "mixed" : "full");
    const std::string sums_field = "/data_types/grad_accum_dtype";
    const plan::Json* const sums = find(sums_field);
    const bool is_own = sums == nullptr || sums->is_null() || *sums == "fp16" || *sums == "bf16";
    if (!is_own && *sums != "fp32" && *sums != "auto")
      diagnostics_.add(sums_field, "fp32, fp16 or bf16 is needed here");
    if (half || brain)  // by default they are accumulated in their own type
      set("training.fp32_gradients", !is_own && *sums == "fp32");
    if (const plan::Json* const scale = find("/fp16/loss_scale"); half && scale != nullptr)
      set("training.loss_scale", *scale);
  }

  const plan::JsonDocument& document_;
  plan::Diagnostics diagnostics_;
  int replicas_;
  std::vector<std::string> assignments_;
};

std::vector<std::string> deepspeed_assignments(std::string_view text, const std::string& name,
                                               const CutContext& context) {
  const plan::JsonDocument document = plan::JsonDocument::parse(std::string(text), name);
  return DeepSpeedReader(document, context.replicas).run();
}

}  // namespace

const Words& deepspeed() {
  static constexpr Words words{unsupported_by_deepspeed, deepspeed_text, deepspeed_assignments};
  return words;
}

}  // namespace pipewright::models::trainer
