// Measures how long a window waits for the response to a change: a dragged boundary, a slider that
// changes the schedule, and only the table that it paints. Prints one JSON line.

#include "pipewright/search/drafts/what_if.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/causes/event_table.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

double ms_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return 1e3 * std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

search::Draft draft_of(int ranks, int microbatches, const std::string& schedule) {
  const std::string text = fmt::format(
      R"({{"format": "pipewright/scenario/1", "name": "bench",
      "model": {{"kind": "gpt", "blocks": {}, "hidden": 1024, "heads": 16, "sequence": 1024}},
      "data": {{"kind": "text", "path": "text.txt"}},
      "cluster": {{"name": "c", "nodes": 1, "devices_per_node": {}, "device": {{"name": "d"}},
        "within_node": {{"latency_s": 1e-5, "bandwidth_per_s": 1e11}}}},
      "pipeline": {{"ranks": {}, "microbatches": {}, "schedule": "{}"}},
      "training": {{"steps": 1, "microbatch_size": 1}}}})",
      4 * ranks - 2, ranks, ranks, microbatches, schedule);
  return {plan::scenario_from_json(plan::JsonDocument::parse(text, "bench.json"))};
}

search::Answer answered(search::WhatIf& what_if, const search::Draft& draft) {
  auto outcome = what_if.answer(draft);
  if (const auto* refusal = std::get_if<search::Refusal>(&outcome))
    throw std::runtime_error(refusal->text);
  return std::get<search::Answer>(std::move(outcome));
}

/// Returns the median of many moves of boundaries, each to a new place.
double drag_ms(search::WhatIf& what_if, const search::Draft& first, int rounds) {
  search::Draft draft = first;
  std::vector<double> times;
  auto boundaries = answered(what_if, draft).plan.partition.boundaries;
  for (int round = 0; round < rounds; ++round) {
    const auto stages = static_cast<int>(boundaries.size()) - 1;
    const int boundary = 1 + round % (stages - 1);
    const auto at = static_cast<std::size_t>(boundary);
    const int back = boundaries[at] - 1 > boundaries[at - 1] ? -1 : 1;
    const int layer = boundaries[at] + (round % 2 == 0 ? back : 0);
    times.push_back(ms_of([&] {
      draft = with_boundary(draft, boundaries, boundary, layer);
      boundaries = answered(what_if, draft).plan.partition.boundaries;
    }));
  }
  return median(times);
}

/// Returns the median of changes to sizes that were not used before.
double slider_ms(search::WhatIf& what_if, const search::Draft& first, int step, int rounds) {
  std::vector<double> times;
  for (int round = 1; round <= rounds; ++round)
    times.push_back(ms_of([&] {
      const auto next =
          changed(first, fmt::format("pipeline.microbatches={}",
                                     first.scenario.pipeline.microbatches - step * round));
      answered(what_if, next);
    }));
  return median(times);
}

double table_ms(const search::Draft& draft, int rounds) {
  search::WhatIf what_if;
  const search::Answer answer = answered(what_if, draft);
  sim::EventTableMaker maker(*answer.plan.structure);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round)
    times.push_back(ms_of([&] {
      maker.table_of(answer.times, {&answer.idle, &answer.memory, answer.critical});
    }));
  return median(times);
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 64, microbatches = 256, rounds = 20;
  std::vector<std::string> schedules{"1f1b"};
  CLI::App app("Times the responses to changes of a plan");
  app.add_option("--ranks", ranks);
  app.add_option("--microbatches", microbatches);
  app.add_option("--rounds", rounds);
  app.add_option("--schedules", schedules)->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  for (const std::string& schedule : schedules) {
    const search::Draft draft = draft_of(ranks, microbatches, schedule);
    search::WhatIf what_if;
    const double drag = drag_ms(what_if, draft, rounds);
    const double slider = slider_ms(what_if, draft, ranks / 16, std::min(rounds, 10));
    fmt::print(
        "{{\"schedule\": \"{}\", \"ranks\": {}, \"microbatches\": {}, \"events\": {}, \"drag_ms\": "
        "{:.2f}, \"slider_ms\": {:.2f}, \"table_ms\": {:.2f}}}\n",
        schedule, ranks, microbatches, answered(what_if, draft).table.size(), drag, slider,
        table_ms(draft, rounds));
  }
}
