#include "print/as_it_is_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "print/device_memory.hpp"
#include "print/plans_table.hpp"

namespace pipewright::cli {
namespace {

double as_gb(double bytes) { return bytes / 1e9; }

/// Tokens per second, and the model's FLOPs over the peak of the GPUs.
struct Speed {
  double tokens_per_s = 0;
  double mfu = 0;
};
Speed speed_of(const AsItIs& plan) {
  const plan::TransformerTraining& training = plan.run.training;
  const double seconds = plan.forecast.time->iteration_s;
  const double peak = plan.cluster.device.flops_per_s * plan.run.cut.devices();
  return {.tokens_per_s = 1.0 * training.batch * training.sequence / seconds,
          .mfu = peak > 0 ? models::training_flops(training) / seconds / peak : 0};
}

const search::RankForecast* memory_of(const AsItIs& plan, std::size_t rank) {
  return rank < plan.forecast.ranks.size() ? &plan.forecast.ranks[rank] : nullptr;
}

/// Returns the names of the holders on all ranks, the largest first.
std::vector<std::string> holder_names(const std::vector<search::RankForecast>& ranks) {
  std::vector<std::pair<std::string, long long>> most;
  for (const search::RankForecast& rank : ranks)
    for (const models::Holder& holder : rank.at_peak) {
      const auto found =
          std::ranges::find(most, holder.name, &std::pair<std::string, long long>::first);
      if (found == most.end())
        most.emplace_back(holder.name, holder.bytes.value);
      else
        found->second = std::max<long long>(found->second, holder.bytes.value);
    }
  std::ranges::stable_sort(most, std::greater{}, &std::pair<std::string, long long>::second);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : most)
    names.push_back(name);
  return names;
}

double held_of(const search::RankForecast& rank, const std::string& name) {
  for (const models::Holder& holder : rank.at_peak)
    if (holder.name == name)
      return static_cast<double>(holder.bytes.value);
  return 0;
}

std::string head_of(const AsItIs& plan) {
  const plan::Cut& cut = plan.run.cut;
  std::string text = fmt::format(
      "{} on {} {}: {}, {} microbatches, {}{}\n", plan.run.training.model.name, cut.devices(),
      plan.cluster.device.name, plan_words(plan.run.training.model, cut), plan.run.microbatches(),
      plan.run.options.precision, plan.run.options.fp8_parameters ? " with fp8 parameters" : "");
  if (plan.forecast.time) {
    const Speed speed = speed_of(plan);
    text += fmt::format("an iteration takes {:.3f} s: {:.0f} tokens/s, {:.1f} % MFU\n",
                        plan.forecast.time->iteration_s, speed.tokens_per_s, 100 * speed.mfu);
  }
  if (plan.needs)
    text +=
        fmt::format("memory of rank {}, the fullest: {}\nit {}{}\n", plan.forecast.read,
                    memory_words(*plan.needs), plan.fits() ? "fits" : "does not fit",
                    plan.memory() > plan::Bytes{}
                        ? fmt::format(" {:.1f} GB", as_gb(static_cast<double>(plan.memory().value)))
                        : std::string(", but the cluster does not say its memory"));
  return text;
}

std::string ranks_of(const AsItIs& plan) {
  std::string text =
      fmt::format("\n{:>4}  {:>6}  {:>9}  {:>10}  {:>8}  {:>8}  {:>8}  {:>9}  stages\n", "rank",
                  "layers", "forward s", "backward s", "end s", "waits s", "peak GB", "after GB");
  const double iteration = plan.forecast.time ? plan.forecast.time->iteration_s : 0;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const search::RankTime& own = plan.ranks[rank];
    const auto seconds = [&](double value) {
      return plan.forecast.time ? fmt::format("{:.3f}", value) : std::string("-");
    };
    const search::RankForecast* const memory = memory_of(plan, rank);
    text += fmt::format("{:>4}  {:>6}  {:>9}  {:>10}  {:>8}  {:>8}  {:>8}  {:>9}  {}\n", rank,
                        own.layers, seconds(own.forward_s), seconds(own.backward_s),
                        seconds(own.end_s), seconds(own.waits_s(iteration)),
                        memory == nullptr ? "-" : fmt::format("{:.2f}", as_gb(memory->peak_bytes)),
                        memory != nullptr && memory->allocated_bytes
                            ? fmt::format("{:.2f}", as_gb(*memory->allocated_bytes))
                            : std::string("-"),
                        fmt::join(own.stages, " "));
  }
  return text;
}

/// Returns the holders on the fullest rank, and on the first and the last rank of the pipeline.
std::string holders_of(const AsItIs& plan) {
  const auto& ranks = plan.forecast.ranks;
  const std::vector<std::string> names = holder_names(ranks);
  if (names.empty())
    return {};
  std::vector<std::size_t> shown{0, plan.forecast.read, ranks.size() - 1};
  std::ranges::sort(shown);
  shown.erase(std::ranges::unique(shown).begin(), shown.end());
  std::string text = fmt::format("\n{:<32}", "at the peak, GB");
  for (const std::size_t rank : shown)
    text += fmt::format("  {:>8}", fmt::format("rank {}", rank));
  for (const std::string& name : names) {
    text += fmt::format("\n{:<32}", name);
    for (const std::size_t rank : shown)
      text += fmt::format("  {:>8.2f}", as_gb(held_of(ranks[rank], name)));
  }
  return text + "\n";
}

std::string refusals_of(const AsItIs& plan) {
  std::string text;
  for (const AsItIsRefusal& refusal : plan.refused)
    text += fmt::format("{:<7}  {}{}{}\n", refusal.part, refusal.option,
                        refusal.option.empty() ? "" : ": ", refusal.reason);
  return text.empty() ? text : "\nrefused\n" + text;
}

std::string assumed_of(const AsItIs& plan) {
  std::string text;
  for (const std::string& one : plan.told.assumed)
    text += one + "\n";
  return text.empty() ? text : "\nassumed\n" + text;
}

plan::Json rank_of(const AsItIs& plan, std::size_t rank) {
  const search::RankTime& own = plan.ranks[rank];
  plan::Json json{{"rank", rank}, {"stages", own.stages}, {"layers", own.layers}};
  if (plan.forecast.time) {
    json["forward_s"] = own.forward_s;
    json["backward_s"] = own.backward_s;
    json["end_s"] = own.end_s;
    json["waits_s"] = own.waits_s(plan.forecast.time->iteration_s);
  }
  const search::RankForecast* const memory = memory_of(plan, rank);
  if (memory == nullptr)
    return json;
  json["peak_bytes"] = memory->peak_bytes;
  if (memory->allocated_bytes)
    json["allocated_bytes"] = *memory->allocated_bytes;
  json["holders"] = plan::Json::object();
  for (const models::Holder& holder : memory->at_peak)
    json["holders"][holder.name] = holder.bytes.value;
  return json;
}

plan::Json cut_of(const models::MeasuredRun& run) {
  const plan::Cut& cut = run.cut;
  std::vector<int> layers;
  for (int stage = 0; stage < cut.stages(); ++stage)
    layers.push_back(cut.layers_of(stage, run.training.model.layers));
  return {{"tensor", cut.tensor},
          {"pipeline", cut.pipeline},
          {"data", cut.data},
          {"context", cut.context},
          {"expert", cut.expert},
          {"expert_tensor", cut.expert_cut()},
          {"chunks", cut.chunks},
          {"group", cut.group},
          {"schedule", schedule_name(cut)},
          {"stage_layers", layers},
          {"microbatch", cut.microbatch},
          {"microbatches", run.microbatches()},
          {"zero", cut.zero},
          {"sequence_parallel", cut.sequence_parallel},
          {"recompute", to_string(cut.recompute)},
          {"overlaps_gradients", cut.overlaps_gradients},
          {"overlaps_parameters", cut.overlaps_parameters},
          {"overlaps_sums", cut.overlaps_sums},
          {"copies_last", cut.copies_last}};
}

plan::Json refused_of(const AsItIs& plan) {
  plan::Json json = plan::Json::array();
  for (const AsItIsRefusal& refusal : plan.refused) {
    plan::Json one{{"part", refusal.part}, {"reason", refusal.reason}};
    if (!refusal.option.empty())
      one["option"] = refusal.option;
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string as_it_is_table(const AsItIs& plan) {
  return head_of(plan) + ranks_of(plan) + holders_of(plan) + assumed_of(plan) + refusals_of(plan);
}

plan::Json to_json(const AsItIs& plan) {
  plan::Json json{{"model", plan.run.training.model.name},
                  {"gpus", plan.run.cut.devices()},
                  {"batch", plan.run.training.batch},
                  {"sequence", plan.run.training.sequence},
                  {"vocabulary", plan.run.training.model.vocabulary},
                  {"precision", plan.run.options.precision},
                  {"cut", cut_of(plan.run)},
                  {"iteration_s", nullptr},
                  {"refused", refused_of(plan)},
                  {"assumed", plan.told.assumed}};
  if (plan.forecast.time) {
    const Speed speed = speed_of(plan);
    json["iteration_s"] = plan.forecast.time->iteration_s;
    json["tokens_per_s"] = speed.tokens_per_s;
    json["mfu"] = speed.mfu;
  }
  if (plan.needs) {
    json["memory"] = to_json(*plan.needs);
    json["fullest_rank"] = plan.forecast.read;
    json["device_bytes"] = plan.memory().value;
    json["fits"] = plan.fits();
  }
  json["ranks"] = plan::Json::array();
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    json["ranks"].push_back(rank_of(plan, rank));
  return json;
}

}  // namespace pipewright::cli
