// Reads torchtitan's configurations as torchtitan does: torchtitan/trainer.py,
// distributed/pipeline_parallel.py and distributed/fsdp.py of 0.3.0, and the same of 0.2.2.

#include "trainers/torchtitan_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipewright/plan/costs/layer_split.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models {
namespace {

class TorchtitanReader {
 public:
  TorchtitanReader(GivenFields given, TorchtitanVersion version, const CutContext& context)
      : given_(std::move(given)), version_(version), context_(context) {}

  std::vector<std::string> run() {
    for (const auto& [field, given] : given_.all())
      if (const auto fault = rule_fault(torchtitan_rules(version_), field,
                                        given.value ? &*given.value : nullptr, name_of(version_)))
        given_.fault(field, *fault);
    ranks_ = given_.integer(parallelism("pipeline_parallel_degree"), 1);
    set("pipeline.ranks", ranks_);
    read_schedule();
    read_stages();
    read_replicas();
    read_shards();
    read_batch();
    read_precision();
    read_optimizer();
    read_recompute();
    given_.throw_if_any();
    return std::move(assignments_);
  }

 private:
  static std::string parallelism(const std::string& field) { return "parallelism." + field; }
  void set(const std::string& field, const plan::Json& value) {
    assignments_.push_back(trainer::assignment(field, value));
  }

  void read_schedule() {
    const std::string field = parallelism("pipeline_parallel_schedule");
    const std::string theirs = given_.text(field, "1F1B");
    const auto found =
        std::ranges::find_if(plan::schedules(), [&](const plan::ScheduleDescriptor& descriptor) {
          const std::string& name = descriptor.torch_class;
          // Their name may be in any case, and may have `Schedule` before it.
          return !name.empty() &&
                 (same_letters(theirs, name) || same_letters(theirs, "Schedule" + name));
        });
    if (found == plan::schedules().end())
      given_.fault(field, fmt::format("{} is not a known torch schedule", theirs));
    else
      schedule_ = &*found;
    if (ranks_ == 1)  // no schedule runs: each microbatch has its forward and backward in turn
      schedule_ = &plan::default_schedule();
    set("pipeline.schedule", schedule_->name);
    const std::string csv = parallelism("pipeline_parallel_schedule_csv");
    if (!given_.text(csv, "").empty())
      given_.fault(csv, "pass this file with --schedule instead");
    const std::string graphs = "training.disable_cuda_graphs";
    if (version_ == TorchtitanVersion::V03 && !given_.flag(graphs, false) && ranks_ > 1)
      given_.fault(graphs, "it must be True with a pipeline, as torchtitan demands");
  }

  void read_stages() {
    const std::string listed = parallelism("module_fqns_per_model_part");
    const std::string per_stage = parallelism("pipeline_parallel_layers_per_stage");
    const auto parts = given_.text_lists(listed);
    const int layers = given_.integer(per_stage, 0);
    const int less[]{given_.integer(parallelism("pipeline_parallel_first_stage_less_layers"), 1, 0),
                     given_.integer(parallelism("pipeline_parallel_last_stage_less_layers"), 1, 0)};
    if (ranks_ == 1) {
      set("pipeline.chunks", 1);
      if (context_.blocks > 0)
        set("pipeline.partition", std::vector{0, context_.blocks + 2});
    } else if (parts) {
      read_parts(listed, *parts);
    } else if (context_.blocks == 0) {
      given_.fault(listed,
                   "list the modules of each stage: torchtitan's own cut is known for models that "
                   "are an embedding, equal blocks and a head");
    } else {
      cut(layers, less[0], less[1]);
    }
  }

  /// Returns the number of layers in a list of modules: `norm` and the head form one layer.
  std::optional<int> layers_of(const std::vector<std::string>& modules, int& block) const {
    int layers = 0;
    for (const std::string& module : modules) {
      if (module == "norm")
        continue;
      if (module.starts_with("layers.")) {
        if (module != fmt::format("layers.{}", block++))
          return {};
      } else if (module != "tok_embeddings" && module != head()) {
        return {};
      }
      ++layers;
    }
    return layers;
  }
  const char* head() const { return version_ == TorchtitanVersion::V02 ? "output" : "lm_head"; }

  void read_parts(const std::string& field, const std::vector<std::vector<std::string>>& parts) {
    std::vector<int> boundaries{0};
    int block = 0;
    for (const auto& part : parts)
      if (const auto layers = layers_of(part, block))
        boundaries.push_back(boundaries.back() + *layers);
      else
        given_.fault(field, fmt::format("[{}]: known here are tok_embeddings, layers.0 and so on "
                                        "in their order, norm and {}",
                                        fmt::join(part, ", "), head()));
    const int stages = static_cast<int>(parts.size());
    if (stages == 0 || stages % ranks_ != 0)
      given_.fault(field, fmt::format("{} parts do not divide among {} ranks", stages, ranks_));
    if (context_.blocks > 0 && boundaries.size() == parts.size() + 1 &&
        boundaries.back() != context_.blocks + 2)
      given_.fault(field, fmt::format("it lists {} layers, but the scenario's model has {}: an "
                                      "embedding, {} blocks and a head",
                                      boundaries.back(), context_.blocks + 2, context_.blocks));
    set("pipeline.partition", boundaries);
    set("pipeline.chunks", std::max(1, stages / ranks_));
  }

  /// Cuts the model as torchtitan does if no stages are listed. `per_stage`: 0 if not given.
  void cut(int per_stage, int first_less, int last_less) {
    const bool is_looped = schedule_->chunks != plan::Chunks::One;
    int stages = ranks_ * (is_looped ? 2 : 1);
    const std::string per_field = parallelism("pipeline_parallel_layers_per_stage");
    if (per_stage > 0) {
      const int weighed = context_.blocks + first_less + last_less;
      stages = (weighed + per_stage - 1) / per_stage;
      if (stages % ranks_ != 0 || (stages / ranks_ > 1) != is_looped) {
        given_.fault(per_field,
                     fmt::format("{} makes {} stages of {} blocks, but {} on {} ranks needs {}",
                                 per_stage, stages, context_.blocks, schedule_->torch_class, ranks_,
                                 is_looped ? "a multiple of the ranks, at least two stages for each"
                                           : "one stage for each"));
        return;
      }
    }
    try {
      std::vector<int> boundaries{1};  // after the embedding
      for (const int blocks : plan::layer_split(stages, context_.blocks, first_less, last_less))
        boundaries.push_back(boundaries.back() + blocks);
      boundaries.front() = 0;
      ++boundaries.back();  // the head
      set("pipeline.partition", boundaries);
      set("pipeline.chunks", stages / ranks_);
    } catch (const plan::InputError& error) {
      given_.fault(per_stage > 0 ? per_field : parallelism("pipeline_parallel_degree"),
                   error.what());
    }
  }

  /// A shard degree of -1, the default, means all remaining ranks.
  void read_replicas() {
    const std::string field = parallelism("data_parallel_replicate_degree");
    const int copies = given_.integer(field, 1);
    int shards = given_.integer(parallelism("data_parallel_shard_degree"), -1);
    if (shards < 0)
      shards = std::max(1, context_.replicas / copies);
    if (copies > 1 && shards > 1)
      given_.fault(field,
                   fmt::format("{} replicas of {} shards: a scenario supports only one of the two",
                               copies, shards));
    replicas_ = std::int64_t{copies} * shards;
    set("pipeline.replicas", replicas_);
    const std::string policy = parallelism("fsdp_reshard_after_forward");
    const std::string reshard = given_.text(policy, "default");
    if (reshard != "default" && reshard != "always" && reshard != "never")
      given_.fault(policy, fmt::format("\"{}\" is not default, always or never", reshard));
    // By default, a pipeline does not reshard parameters between its passes.
    const bool reshards = reshard == "always" || (reshard == "default" && ranks_ == 1);
    shards_ = shards;
    set("training.zero", shards == 1 ? 0 : reshards ? 3 : 2);
    if (shards > 1)  // gradients are reduced after each microbatch
      set("pipeline.overlap_reductions", true);
  }

  void read_shards() {
    tensor_ = given_.integer(parallelism("tensor_parallel_degree"), 1);
    context_ranks_ = given_.integer(parallelism("context_parallel_degree"), 1);
    set("pipeline.tensor", tensor_);
    set("pipeline.sequence_parallel",
        given_.flag(parallelism("enable_sequence_parallel"), true) && tensor_ > 1);
    set("pipeline.context", context_ranks_);
    set("pipeline.expert", given_.integer(parallelism("expert_parallel_degree"), 1));
  }

  /// A pipeline divides the local batch into microbatches. Without one, the local batch is a
  /// microbatch, and several are accumulated to the global batch.
  void read_batch() {
    const int local = given_.integer("training.local_batch_size", 8);
    const int microbatch = given_.integer(parallelism("pipeline_parallel_microbatch_size"), 1);
    const int global = given_.integer("training.global_batch_size", -1);
    const std::int64_t pass = local * replicas_;
    if (global > 0 && global % pass != 0)
      given_.fault("training.global_batch_size",
                   fmt::format("{} is not a multiple of local_batch_size {} on {} replicas", global,
                               local, replicas_));
    const std::int64_t passes = global < 0 ? 1 : std::max<std::int64_t>(1, global / pass);
    if (ranks_ > 1 && passes > 1)
      given_.fault("training.global_batch_size",
                   fmt::format("{} passes of the pipeline per step, but a scenario has one: use "
                               "local_batch_size {}",
                               passes, local * passes));
    if (ranks_ > 1 && local % microbatch != 0)
      given_.fault("training.local_batch_size",
                   fmt::format("{} is not a multiple of pipeline_parallel_microbatch_size {}",
                               local, microbatch));
    set("training.microbatch_size", ranks_ > 1 ? microbatch : local);
    set("pipeline.microbatches", ranks_ > 1 ? std::max(1, local / microbatch) : passes);
    const int tokens = given_.integer("training.seq_len", 2048);
    if (given_.all().contains("training.seq_len") && context_.units > 0 && tokens != context_.units)
      given_.fault("training.seq_len", fmt::format("{}, but the scenario's samples have {} tokens",
                                                   tokens, context_.units));
  }

  /// 0.2 computes in bfloat16 only if FSDP does it, or autocast on a device with a whole model.
  void read_precision() {
    const std::string field = "training.mixed_precision_param";
    const std::string type = given_.text(field, "bfloat16");
    if (type != "bfloat16" && type != "float32")
      given_.fault(field, fmt::format("\"{}\" is not bfloat16 or float32", type));
    const bool has_effect = version_ == TorchtitanVersion::V03 || shards_ > 1 ||
                            context_ranks_ > 1 || (ranks_ == 1 && tensor_ == 1);
    const bool is_mixed = type == "bfloat16" && has_effect;
    set("training.precision", is_mixed ? "mixed" : "full");
    if (is_mixed)  // FSDP accumulates and reduces gradients in float32
      set("training.fp32_gradients", true);
    const double norm = given_.number("training.max_norm", 1.0);
    set("training.clip_norm", std::isfinite(norm) ? norm : 0.0);
  }

  void read_optimizer() {
    if (version_ == TorchtitanVersion::V02) {
      check_optimizer("optimizer.name", given_.text("optimizer.name", "AdamW"));
      for (const auto& [field, ours] : {std::pair{"lr", "training.learning_rate"},
                                        std::pair{"weight_decay", "training.weight_decay"}})
        if (const std::string theirs = fmt::format("optimizer.{}", field);
            given_.all().contains(theirs))
          set(ours, given_.number(theirs, 0));
      return;
    }
    const std::string field = "optimizer.param_groups";
    const plan::Json* const groups = given_.find(field);
    if (groups == nullptr || !groups->is_array())
      return;
    for (const plan::Json& group : *groups)
      read_group(field, group, groups->size() > 1);
  }
  void read_group(const std::string& field, const plan::Json& group, bool is_one_of_several) {
    if (!group.is_object())
      return given_.fault(field, "a list of ParamGroupConfig is needed here");
    const plan::Json name = group.value("optimizer_name", plan::Json());
    check_optimizer(field, name.is_string() ? name.get<std::string>() : name.dump());
    if (is_one_of_several)  // their rates differ, and a scenario has one
      return;
    const plan::Json settings = group.value("optimizer_kwargs", plan::Json::object());
    for (const auto& [theirs, ours] : {std::pair{"lr", "training.learning_rate"},
                                       std::pair{"weight_decay", "training.weight_decay"}})
      if (settings.is_object() && settings.contains(theirs) && settings.at(theirs).is_number())
        set(ours, settings.at(theirs));
  }
  void check_optimizer(const std::string& field, const std::string& name) {
    if (name != "AdamW" && name != "Adam")
      given_.fault(field, fmt::format("{} is not predicted: use AdamW or Adam", name));
    else
      set("training.optimizer", "adamw");
  }

  void read_recompute() {
    const bool is_toml = version_ == TorchtitanVersion::V02;
    const std::string field = is_toml ? "activation_checkpoint.mode" : "activation_checkpoint";
    const auto given = given_.all().find(field);
    const bool is_none =
        given != given_.all().end() && given->second.value && given->second.value->is_null();
    const std::string mode =
        is_none ? "none" : given_.text(field, is_toml ? "selective" : "SelectiveAC.Config");
    if (mode == "none" || mode == "full")
      set("training.recompute", mode);
    else if (!is_toml && mode.ends_with("FullAC.Config"))
      set("training.recompute", "full");
    else
      given_.fault(field, fmt::format("\"{}\" {} is not supported by a scenario: use {}", mode,
                                      is_toml ? "(the default)" : "(SelectiveAC is the default)",
                                      is_toml ? "none or full" : "FullAC.Config() or None"));
  }

  GivenFields given_;
  TorchtitanVersion version_;
  const CutContext& context_;
  int ranks_ = 1;
  int tensor_ = 1;
  int context_ranks_ = 1;
  int shards_ = 1;
  std::int64_t replicas_ = 1;
  const plan::ScheduleDescriptor* schedule_ = &plan::default_schedule();
  std::vector<std::string> assignments_;
};

}  // namespace

std::vector<std::string> torchtitan_assignments(GivenFields given, TorchtitanVersion version,
                                                const CutContext& context) {
  return TorchtitanReader(std::move(given), version, context).run();
}

}  // namespace pipewright::models
