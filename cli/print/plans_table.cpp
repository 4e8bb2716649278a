#include "print/plans_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipewright/sim/planner/plan_account.hpp"
#include "pipewright/sim/planner/plan_files.hpp"

namespace pipewright::cli {
namespace {

const char* word_of(plan::RunRecompute recompute) {
  switch (recompute) {
    case plan::RunRecompute::Selective:
      return "selective";
    case plan::RunRecompute::Full:
      return "full";
    case plan::RunRecompute::None:
    case plan::RunRecompute::Unknown:
      return "none";
  }
  return "none";
}

/// How many layers the stages have: "20", or "19×7 12" where they are not alike.
std::string layers_words(const plan::TrainingRun& run) {
  std::string words;
  for (int stage = 0; stage < run.stages();) {
    const int first = stage, layers = run.layers_of(stage);
    while (stage < run.stages() && run.layers_of(stage) == layers)
      ++stage;
    words += fmt::format("{}{}", words.empty() ? "" : " ", layers);
    if (stage - first > 1 && stage - first < run.stages())
      words += fmt::format("×{}", stage - first);
  }
  return words;
}

/// In what a plan differs from the next: "pp 16 instead of 8, ZeRO 1 instead of 0".
std::string change_between(const plan::TrainingRun& from, const plan::TrainingRun& to) {
  std::string words;
  const auto add = [&](const char* name, const auto& before, const auto& after) {
    if (before != after)
      words += fmt::format("{}{} {} instead of {}", words.empty() ? "" : ", ", name, after, before);
  };
  add("tp", from.tensor, to.tensor);
  add("pp", from.pipeline, to.pipeline);
  add("dp", from.data, to.data);
  add("cp", from.context, to.context);
  add("ep", from.expert, to.expert);
  add("schedule", from.schedule_name(), to.schedule_name());
  add("chunks", from.chunks, to.chunks);
  add("layers", layers_words(from), layers_words(to));
  add("microbatch", from.microbatch, to.microbatch);
  add("recompute", std::string(word_of(from.recompute)), std::string(word_of(to.recompute)));
  add("ZeRO", from.zero, to.zero);
  add("sequence parallel", from.sequence_parallel ? "yes" : "no",
      to.sequence_parallel ? std::string("yes") : std::string("no"));
  return words;
}

double gb(double bytes) { return bytes / 1e9; }

std::string too_large_words(const plan::Cluster& cluster, const sim::FoundPlan& plan) {
  return fmt::format("{}: {:.1f} GB a device, and {} has {:.1f} GB", words_of(plan.run),
                     gb(plan.peak_bytes),
                     cluster.device.name.empty() ? "a device" : cluster.device.name,
                     gb(static_cast<double>(cluster.device.memory.value)));
}

std::vector<int> layers_by_stage(const plan::TrainingRun& run) {
  std::vector<int> layers;
  for (int stage = 0; stage < run.stages(); ++stage)
    layers.push_back(run.layers_of(stage));
  return layers;
}

std::vector<double> peaks_by_rank(const plan::Cluster& cluster, const sim::FoundPlan& plan) {
  std::vector<double> peaks;
  for (const sim::RankAccount& rank : account_of(cluster, plan).ranks)
    peaks.push_back(rank.total());
  return peaks;
}

plan::Json json_of(const plan::Cluster& cluster, const sim::FoundPlan& plan) {
  const plan::TrainingRun& run = plan.run;
  return {{"gpus", run.gpus},
          {"tensor", run.tensor},
          {"pipeline", run.pipeline},
          {"data", run.data},
          {"context", run.context},
          {"expert", run.expert},
          {"chunks", run.chunks},
          {"microbatch", run.microbatch},
          {"microbatches", run.microbatches()},
          {"schedule", run.schedule_name()},
          {"stage_layers", layers_by_stage(run)},
          {"recompute", word_of(run.recompute)},
          {"zero", run.zero},
          {"sequence_parallel", run.sequence_parallel},
          {"iteration_s", plan.iteration_s},
          {"least_s", plan.least_s},
          {"tokens_per_s", plan.tokens_per_s},
          {"mfu", plan.mfu},
          {"bubble", plan.bubble},
          {"peak_bytes", plan.peak_bytes},
          {"peak_bytes_by_rank", peaks_by_rank(cluster, plan)},
          {"fits", cluster.device.memory.value <= 0 ||
                       plan.peak_bytes <= static_cast<double>(cluster.device.memory.value)},
          {"gpu_hours_per_billion_tokens", run.gpus * 1e9 / plan.tokens_per_s / 3600},
          {"megatron_arguments", sim::megatron_arguments(run)},
          {"scenario", to_json(sim::scenario_of(cluster, plan))}};
}

}  // namespace

std::string words_of(const plan::TrainingRun& run) {
  std::string words = fmt::format("tp {}, pp {}, dp {}", run.tensor, run.pipeline, run.data);
  if (run.context > 1)
    words += fmt::format(", cp {}", run.context);
  if (run.experts > 0)
    words += fmt::format(", ep {}", run.expert);
  words += fmt::format(", microbatch {}", run.microbatch);
  if (!run.schedule.empty())
    words += ", " + run.schedule;
  else if (run.chunks > 1)
    words += fmt::format(", {} chunks", run.chunks);
  if (!run.stage_layers.empty())
    words += fmt::format(", layers {}", layers_words(run));
  if (run.recompute != plan::RunRecompute::None)
    words += fmt::format(", {} recomputation", word_of(run.recompute));
  if (run.zero > 0)
    words += fmt::format(", ZeRO {}", run.zero);
  if (run.sequence_parallel)
    words += ", sequence parallel";
  return words;
}

std::string plans_table(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                        const std::optional<sim::Regret>& regret) {
  std::string text;
  if (!answer.plans.empty())
    text += fmt::format("{:>4}  {:>11}  {:>10}  {:>6}  {:>7}  {:>9}  {:>12}  {}\n", "plan",
                        "iteration", "tokens/s", "MFU", "bubble", "memory", "GPU h / 1e9", "cut");
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    const sim::FoundPlan& plan = answer.plans[at];
    text += fmt::format(
        "{:>4}  {:>9.3f} s  {:>10.0f}  {:>4.1f} %  {:>5.1f} %  {:>6.1f} GB  {:>12.1f}  {}\n",
        at + 1, plan.iteration_s, plan.tokens_per_s, 100 * plan.mfu, 100 * plan.bubble,
        gb(plan.peak_bytes), plan.run.gpus * 1e9 / plan.tokens_per_s / 3600, words_of(plan.run));
  }
  if (answer.too_large_but_faster)
    text += fmt::format("\nThe next faster one takes {:.3f} s and does not fit. {}\n",
                        answer.too_large_but_faster->iteration_s,
                        too_large_words(cluster, *answer.too_large_but_faster));
  if (regret)
    text += fmt::format(
        "\nWith constants drawn by their uncertainty, plan 1 is the best of these in {:.0f} % of "
        "the "
        "draws and takes {:.2f} % longer than the best on average.\n",
        100 * regret->best_share, 100 * regret->mean);
  if (answer.smallest)
    text += fmt::format("No plan fits. The smallest is {}\n",
                        too_large_words(cluster, *answer.smallest));
  text += fmt::format(
      "\n{} candidates in {:.2f} s: {} too large, {} proved to be slower, {} simulated{}\n",
      answer.candidates, answer.seconds, answer.too_large, answer.bounded, answer.simulated,
      answer.interrupted ? "; stopped before its end" : "");
  return text;
}

std::string plan_explained(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                           std::size_t number) {
  const sim::FoundPlan& plan = answer.plans[number];
  const sim::PlanAccount account = account_of(cluster, plan);
  const auto ms = [](const plan::PassSeconds& pass) {
    return fmt::format("{:.3f} + {:.3f} ms", 1e3 * pass.forward, 1e3 * pass.backward);
  };
  std::string text =
      fmt::format("plan {}: {}\n{:.3f} s an iteration, {} microbatches a pipeline\n\n", number + 1,
                  words_of(plan.run), plan.iteration_s, plan.run.microbatches());
  text += "forward + backward of a microbatch\n";
  text += fmt::format("  a layer        {}\n", ms(account.times.layer));
  if (plan.run.dense_layers > 0)
    text += fmt::format("  a dense layer  {}\n", ms(account.times.dense_layer));
  text += fmt::format("  the embedding  {}\n  the head       {}\n", ms(account.times.embedding),
                      ms(account.times.head));
  if (plan.run.pipeline > 1)
    text +=
        fmt::format("a transfer between stages: {:.3f} ms within a node, {:.3f} ms between nodes\n",
                    1e3 * account.times.hop_s, 1e3 * account.times.network_hop_s);
  text +=
      fmt::format("\n{:>4}  {:>7}  {:>6}  {:>10}  {:>7}  {:>9}  {:>11}  {:>7}  {:>9}\n", "rank",
                  "stages", "layers", "busy", "idle", "standing", "activations", "work", "total");
  for (std::size_t rank = 0; rank < account.ranks.size(); ++rank) {
    const sim::RankAccount& own = account.ranks[rank];
    text += fmt::format(
        "{:>4}  {:>7}  {:>6}  {:>8.3f} s  {:>5.1f} %  {:>6.1f} GB  {:>8.1f} GB  {:>4.1f} GB  "
        "{:>6.1f} "
        "GB\n",
        rank, own.stages.size(), own.layers, own.busy_s,
        100 * std::max(0.0, 1 - own.busy_s / plan.iteration_s), gb(own.standing), gb(own.kept),
        gb(own.at_work), gb(own.total()));
  }
  if (number > 0)
    text += fmt::format("\nPlan {} takes {:.3f} s less: {}\n", number,
                        plan.iteration_s - answer.plans[number - 1].iteration_s,
                        change_between(plan.run, answer.plans[number - 1].run));
  if (number == 0 && answer.too_large_but_faster)
    text += fmt::format("\nThe next faster one does not fit. {}\n",
                        too_large_words(cluster, *answer.too_large_but_faster));
  return text;
}

draw::Chart chart_of(const sim::PlanAnswer& answer) {
  draw::Chart chart;
  chart.title =
      fmt::format("{}: {} plans, of {} candidates",
                  answer.plans.front().run.model.empty() ? "plans" : answer.plans.front().run.model,
                  answer.plans.size(), answer.candidates);
  chart.x_label = "memory of the fullest device, GB";
  chart.y_label = "seconds an iteration";
  draw::ChartLine line;
  for (auto plan = answer.plans.rbegin(); plan != answer.plans.rend(); ++plan)
    line.points.emplace_back(gb(plan->peak_bytes), plan->iteration_s);  // by rising memory
  chart.lines.push_back(std::move(line));
  return chart;
}

plan::Json to_json(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                   const std::optional<sim::Regret>& regret) {
  plan::Json plans = plan::Json::array();
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    plan::Json plan = json_of(cluster, answer.plans[at]);
    plan["change_to_next"] = at + 1 < answer.plans.size()
                                 ? change_between(answer.plans[at].run, answer.plans[at + 1].run)
                                 : "";
    plans.push_back(std::move(plan));
  }
  plan::Json json{{"format", "pipewright/plans/1"},
                  {"candidates", answer.candidates},
                  {"pruned", answer.too_large + answer.bounded},
                  {"pruned_by_memory", answer.too_large},
                  {"pruned_by_bound", answer.bounded},
                  {"simulated", answer.simulated},
                  {"seconds", answer.seconds},
                  {"interrupted", answer.interrupted},
                  {"plans", std::move(plans)}};
  if (regret) {
    json["regret_percent"] = 100 * regret->mean;
    json["best_share"] = regret->best_share;
  }
  if (answer.too_large_but_faster)
    json["too_large_but_faster"] = json_of(cluster, *answer.too_large_but_faster);
  if (answer.smallest)
    json["smallest"] = json_of(cluster, *answer.smallest);
  return json;
}

}  // namespace pipewright::cli
