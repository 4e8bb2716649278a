#include "print/search_answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/scenario/kinds_of_ranks.hpp"

namespace pipewright::cli {

std::string account_words(const search::SearchAccount& account, bool is_answered) {
  return fmt::format(
             "{} candidates in {:.2f} s{}: {}{} too large, {} proved to be slower, {} "
             "simulated{}\n",
             account.candidates, account.seconds,
             is_answered ? fmt::format(", the best after {:.2f} s", account.best_seconds) : "",
             account.impossible > 0 ? fmt::format("{} impossible, ", account.impossible) : "",
             account.too_large, account.bounded, account.simulated,
             account.interrupted ? "; interrupted" : "") +
         (account.why_impossible.empty()
              ? ""
              : fmt::format("the first impossible one: {}\n", account.why_impossible));
}

plan::Json account_json(const search::SearchAccount& account) {
  return {{"format", "pipewright/plans/1"},
          {"candidates", account.candidates},
          {"pruned", account.impossible + account.too_large + account.bounded},
          {"impossible", account.impossible},
          {"why_impossible", account.why_impossible},
          {"pruned_by_memory", account.too_large},
          {"pruned_by_bound", account.bounded},
          {"simulated", account.simulated},
          {"seconds", account.seconds},
          {"best_seconds", account.best_seconds},
          {"interrupted", account.interrupted}};
}

plan::Json cut_json(const plan::Scenario& scenario, const plan::Cut& cut) {
  return {{"gpus", cut.devices()},
          {"tensor", cut.tensor},
          {"pipeline", cut.pipeline},
          {"data", cut.data},
          {"context", cut.context},
          {"expert", cut.expert},
          {"chunks", cut.chunks},
          {"microbatch", cut.microbatch},
          {"microbatches", scenario.pipeline.microbatches},
          {"schedule", schedule_name(cut)},
          {"boundaries", std::get<std::vector<int>>(scenario.pipeline.partition)},
          {"kinds_by_rank", plan::kinds_of_ranks(scenario)},
          {"recompute", to_string(cut.recompute)},
          {"zero", cut.zero},
          {"sequence_parallel", cut.sequence_parallel}};
}

plan::Json memory_json(const std::vector<models::DeviceMemory>& memory) {
  plan::Json ranks = plan::Json::array();
  for (const models::DeviceMemory& rank : memory)
    ranks.push_back(to_json(rank));
  return ranks;
}

}  // namespace pipewright::cli
