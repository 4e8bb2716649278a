#include "print/plans_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/cluster/even_memory.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/scenario/kinds_of_ranks.hpp"
#include "pipewright/search/planner/plan_account.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_words.hpp"
#include "pipewright/search/planner/uneven_ranks.hpp"
#include "print/device_memory.hpp"
#include "print/search_answer.hpp"

namespace pipewright::cli {
namespace {

double gb(double bytes) { return bytes / 1e9; }

/// Describes the rank that exceeds the memory of its devices by most, and these devices.
std::string too_large_words(const PlansFound& found, const search::FoundPlan& plan) {
  const search::RankDevices devices = search::rank_devices(plan.cluster, plan.cut);
  std::size_t rank = 0;
  plan::Bytes most_above{std::numeric_limits<std::int64_t>::min()};
  for (std::size_t at = 0; at < plan.peaks.size(); ++at)
    if (const plan::Bytes above = plan.peaks[at] - devices.memory[at];
        devices.memory[at] > plan::Bytes{} && above > most_above)
      rank = at, most_above = above;
  const std::string name =
      plan::kinds_of_ranks(search::scenario_of(plan.cluster, found.training, plan.cut))[rank];
  return fmt::format(
      "{}: {:.1f} GB per device, but {} has {:.1f} GB", plan_words(found.training, plan),
      gb(static_cast<double>(plan.peaks[rank].value)), name.empty() ? "a device" : name,
      gb(static_cast<double>(devices.memory[rank].value)));
}

std::vector<int> layers_by_stage(const plan::TransformerConfig& model, const plan::Cut& cut) {
  std::vector<int> layers;
  for (int stage = 0; stage < cut.stages(); ++stage)
    layers.push_back(cut.layers_of(stage, model.layers));
  return layers;
}

/// Returns an empty string if Megatron-LM cannot run the plan.
std::string megatron_arguments(const plan::Scenario& scenario) {
  std::string text = find_trainer_file(models::Trainer::Megatron, scenario).value_or("\n");
  text.pop_back();  // the newline at the end
  return text;
}

/// Returns the fields of the plan's scenario that `pipewright train` does not support.
std::vector<std::string> untrained_fields(const plan::Scenario& scenario) {
  return plan::only_predicted(scenario, plan::RankTransport::Nccl);
}

plan::Json json_of(const PlansFound& found, const search::FoundPlan& plan) {
  const plan::Cut& cut = plan.cut;
  const plan::Scenario scenario = search::scenario_of(plan.cluster, found.training, cut);
  const plan::Bytes memory = plan::largest_memory(found.cluster);
  plan::Json json = cut_json(scenario, cut);
  json.update(
      {{"stage_layers", layers_by_stage(found.training.model, cut)},
       {"overlaps_gradients", cut.overlaps_gradients},
       {"iteration_s", plan.iteration_s},
       {"least_s", plan.least_s},
       {"tokens_per_s", plan.tokens_per_s},
       {"mfu", plan.mfu},
       {"bubble", plan.bubble},
       {"memory_bytes", plan.peak_bytes},
       {"memory_by_rank", memory_json(plan.memory)},
       {"fits", memory.value <= 0 || plan.evened_bytes <= static_cast<double>(memory.value)},
       {"gpu_hours_per_billion_tokens", cut.devices() * 1e9 / plan.tokens_per_s / 3600},
       {"megatron_arguments", megatron_arguments(scenario)},
       {"only_predicted", untrained_fields(scenario)},
       {"scenario", to_json(scenario)}});
  return json;
}

}  // namespace

std::string plan_words(const plan::TransformerConfig& model, const plan::Cut& cut) {
  return search::cut_words(cut, model.layers, model.has_mixture());
}

std::string plan_words(const plan::TransformerTraining& training, const search::FoundPlan& plan) {
  const std::string kinds =
      plan::kinds_words(search::scenario_of(plan.cluster, training, plan.cut));
  return plan_words(training.model, plan.cut) + (kinds.empty() ? "" : ", ranks on " + kinds);
}

namespace {

/// Returns "48.8 h", "12.5 min" or "9.9 s".
std::string duration_words(plan::Seconds time) {
  if (time.value >= 3600)
    return fmt::format("{:.1f} h", time.value / 3600);
  return time.value >= 60 ? fmt::format("{:.1f} min", time.value / 60)
                          : fmt::format("{:.1f} s", time.value);
}

std::string kept_words(const KeptTime& kept) {
  return fmt::format(
      "\nOne of plan 1's GPUs fails every {}: a checkpoint of {:.1f} GB takes {}, and with one "
      "every {} {:.2f} % of the time remain for training.\n",
      duration_words(kept.costs.between_failures), gb(static_cast<double>(kept.checkpoint.value)),
      duration_words(kept.costs.checkpoint), duration_words(kept.interval), 100 * kept.share);
}

/// Names the plans that `pipewright train` does not support, with the fields that are the reason.
std::string untrained_words(const PlansFound& found) {
  std::map<std::string, std::vector<std::size_t>> plans_of;  // by fields
  for (std::size_t at = 0; at < found.answer.plans.size(); ++at) {
    const search::FoundPlan& plan = found.answer.plans[at];
    const auto fields =
        untrained_fields(search::scenario_of(plan.cluster, found.training, plan.cut));
    if (!fields.empty())
      plans_of[fmt::format("{}", fmt::join(fields, ", "))].push_back(at + 1);
  }
  std::string text;
  for (const auto& [fields, plans] : plans_of)
    text += fmt::format("\nPlan{} {}: `pipewright train` does not support {}.\n",
                        plans.size() == 1 ? "" : "s", fmt::join(plans, ", "), fields);
  return text;
}

}  // namespace

std::string plans_table(const PlansFound& found) {
  const search::PlanAnswer& answer = found.answer;
  std::string text;
  if (!answer.plans.empty())
    text += fmt::format("{:>4}  {:>11}  {}{:>10}  {:>6}  {:>7}  {:>9}  {:>12}  {}\n", "plan",
                        "iteration", found.at.empty() ? "" : fmt::format("{:>11}  ", found.at),
                        "tokens/s", "MFU", "bubble", "memory", "GPU h / 1e9", "cut");
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    const search::FoundPlan& plan = answer.plans[at];
    text += fmt::format(
        "{:>4}  {:>9.3f} s  {}{:>10.0f}  {:>4.1f} %  {:>5.1f} %  {:>6.1f} GB  {:>12.1f}  {}\n",
        at + 1, plan.iteration_s, found.at.empty() ? "" : fmt::format("{:>9.3f} s  ", plan.at_s),
        plan.tokens_per_s, 100 * plan.mfu, 100 * plan.bubble, gb(plan.peak_bytes),
        plan.cut.devices() * 1e9 / plan.tokens_per_s / 3600, plan_words(found.training, plan));
  }
  if (answer.nearest && !answer.plans.empty())
    text += fmt::format("\nThe next faster one takes {:.3f} s and does not fit. {}\n",
                        answer.nearest->iteration_s, too_large_words(found, *answer.nearest));
  if (found.regret)
    text += fmt::format(
        "\nWith constants sampled by their uncertainty, plan 1 is the best of these in {:.0f} % of "
        "the samples and takes {:.2f} % longer than the best on average.\n",
        100 * found.regret->best_share, 100 * found.regret->mean);
  if (found.kept)
    text += kept_words(*found.kept);
  if (answer.nearest && answer.plans.empty())
    text +=
        fmt::format("No plan fits. The smallest is {}\n", too_large_words(found, *answer.nearest));
  text += untrained_words(found);
  text += "\n" + account_words(answer, !answer.plans.empty());
  return text;
}

std::string plan_explained(const PlansFound& found, std::size_t number) {
  const search::PlanAnswer& answer = found.answer;
  const search::FoundPlan& plan = answer.plans[number];
  const plan::TransformerConfig& model = found.training.model;
  const search::PlanAccount account = search::account_of(plan.cluster, found.training, plan.cut);
  const auto of = [](plan::Bytes bytes) { return gb(static_cast<double>(bytes.value)); };
  const auto ms = [](const models::PassSeconds& pass) {
    return fmt::format("{:.3f} + {:.3f} ms", 1e3 * pass.forward, 1e3 * pass.backward);
  };
  std::string text =
      fmt::format("plan {}: {}\n{:.3f} s per iteration, {} microbatches per pipeline\n\n",
                  number + 1, plan_words(found.training, plan), plan.iteration_s,
                  plan.cut.microbatches(found.training.batch));
  text += "forward + backward of a microbatch\n";
  text += fmt::format("  a layer        {}\n", ms(account.times.layer));
  if (model.leading_dense_layers() > 0)
    text += fmt::format("  a dense layer  {}\n", ms(account.times.dense_layer));
  text += fmt::format("  the embedding  {}\n  the head       {}\n", ms(account.times.embedding),
                      ms(account.times.head));
  if (plan.cut.pipeline > 1)
    text +=
        fmt::format("a transfer between stages: {:.3f} ms within a node, {:.3f} ms between nodes\n",
                    1e3 * account.times.stage_transfer_s, 1e3 * account.times.network_hop_s);
  text += "\n" + fullest_line(plan.memory);
  text += fmt::format("\n{:>4}  {:>7}  {:>6}  {:>10}  {:>7}  {:>9}  {:>11}  {:>10}  {:>9}  {:>9}\n",
                      "rank", "stages", "layers", "busy", "idle", "static", "activations",
                      "fragmented", "other", "memory");
  for (std::size_t rank = 0; rank < account.ranks.size(); ++rank) {
    const search::RankAccount& own = account.ranks[rank];
    const models::DeviceMemory& memory = plan.memory[rank];
    text += fmt::format(
        "{:>4}  {:>7}  {:>6}  {:>8.3f} s  {:>5.1f} %  {:>6.1f} GB  {:>8.1f} GB  {:>7.1f} GB  "
        "{:>6.1f} GB  {:>6.1f} GB\n",
        rank, own.stages.size(), own.layers, own.busy_s,
        100 * std::max(0.0, 1 - own.busy_s / plan.iteration_s), of(memory.standing),
        of(memory.allocated - memory.standing), of(memory.fragmentation()),
        of(memory.context + memory.communicators), of(memory.total()));
  }
  if (number > 0)
    text +=
        fmt::format("\nPlan {} takes {:.3f} s less: {}\n", number,
                    plan.iteration_s - answer.plans[number - 1].iteration_s,
                    search::changes_between(plan.cut, answer.plans[number - 1].cut, model.layers));
  if (number == 0 && answer.nearest)
    text += fmt::format("\nThe next faster one does not fit. {}\n",
                        too_large_words(found, *answer.nearest));
  return text;
}

draw::Chart chart_of(const PlansFound& found) {
  const search::PlanAnswer& answer = found.answer;
  const std::string& model = found.training.model.name;
  draw::Chart chart;
  chart.title = fmt::format("{}: {} plans, of {} candidates", model.empty() ? "plans" : model,
                            answer.plans.size(), answer.candidates);
  chart.x_label = "memory of the fullest device, GB";
  chart.y_label = "seconds per iteration";
  draw::ChartLine line;
  for (auto plan = answer.plans.rbegin(); plan != answer.plans.rend(); ++plan)
    line.points.emplace_back(gb(plan->peak_bytes), plan->iteration_s);  // by ascending memory
  chart.lines.push_back(std::move(line));
  return chart;
}

plan::Json to_json(const PlansFound& found) {
  const search::PlanAnswer& answer = found.answer;
  plan::Json plans = plan::Json::array();
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    plan::Json plan = json_of(found, answer.plans[at]);
    if (!found.at.empty())
      plan[found.at + "_s"] = answer.plans[at].at_s;
    plan["change_to_next"] =
        at + 1 < answer.plans.size()
            ? search::changes_between(answer.plans[at].cut, answer.plans[at + 1].cut,
                                      found.training.model.layers)
            : "";
    plans.push_back(std::move(plan));
  }
  plan::Json json = account_json(answer);
  json["plans"] = std::move(plans);
  if (found.regret) {
    json["regret_percent"] = 100 * found.regret->mean;
    json["best_share"] = found.regret->best_share;
  }
  if (found.kept)
    json["failures"] = {{"between_s", found.kept->costs.between_failures.value},
                        {"checkpoint_bytes", found.kept->checkpoint.value},
                        {"checkpoint_s", found.kept->costs.checkpoint.value},
                        {"interval_s", found.kept->interval.value},
                        {"goodput", found.kept->share}};
  if (answer.nearest)
    json[answer.plans.empty() ? "smallest" : "too_large_but_faster"] =
        json_of(found, *answer.nearest);
  return json;
}

}  // namespace pipewright::cli
