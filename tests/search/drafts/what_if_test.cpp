#include "pipewright/search/drafts/what_if.hpp"

#include <numeric>

#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "search/support/drafts.hpp"
#include "support/error_of.hpp"

namespace what_if_test {

using namespace pipewright;
using search::Answer;
using search::Draft;
using search::Refusal;
using search::WhatIf;
using test::answer_to;
using test::answered;
using test::error_of;
using test::shared_card;

Refusal refused(const std::variant<Answer, Refusal>& outcome) {
  REQUIRE(std::holds_alternative<Refusal>(outcome));
  return std::get<Refusal>(outcome);
}

void require_same(const Answer& found, const loop::Prediction& expected) {
  REQUIRE(found.times.iteration == expected.times.iteration);
  REQUIRE(found.critical == expected.critical);
  REQUIRE(found.idle.spans == expected.idle.spans);
  REQUIRE(found.bound.empty());
  REQUIRE(found.memory.peaks.size() == expected.peaks.size());
  for (std::size_t rank = 0; rank < expected.peaks.size(); ++rank)
    REQUIRE(found.memory.peaks[rank].held == expected.peaks[rank].held);
  REQUIRE(timeline_of(found.table) == timeline_of(table_of(expected.timeline)));
}

TEST_CASE("An answer equals the output of simulate, whatever was asked before", "[loop][what_if]") {
  WhatIf what_if;
  int answers = 0;
  for (const int round : {0, 1})
    for (const plan::ScheduleDescriptor& schedule : plan::schedules())
      for (const char* change : {"training.recompute=none", "pipeline.local_transfer=copy",
                                 "cluster.between_nodes.latency_s=0.001"}) {
        const Draft draft = shared_card({"pipeline.schedule=" + std::string(schedule.name),
                                         "pipeline.ranks=2", "pipeline.microbatches=8", change});
        CAPTURE(schedule.name, change, round);
        const auto outcome = what_if.answer(draft);
        if (std::holds_alternative<Refusal>(outcome))
          continue;
        const auto plan = sim::lay_out(draft.scenario, *draft.costs);
        require_same(std::get<Answer>(outcome), loop::predict(draft.scenario, plan));
        ++answers;
      }
  CHECK(answers > 60);
}

TEST_CASE("A repeated question with CUDA graphs has the peak of the first", "[loop][what_if]") {
  // Times do not depend on the graphs, so both drafts share one Structure.
  WhatIf what_if;
  for (const char* graphs : {"false", "true", "false"}) {
    const Draft draft = changed(shared_card(), std::string("training.cuda_graphs=") + graphs);
    CAPTURE(graphs);
    CHECK(answered(what_if.answer(draft)).figures.peak.value ==
          answer_to(draft).figures.peak.value);
  }
  CHECK(answer_to(shared_card({"training.cuda_graphs=true"})).figures.peak >
        answer_to(shared_card()).figures.peak);
}

TEST_CASE("The bubble of a rank is its idle time, and the figure is the mean over the ranks",
          "[loop][what_if]") {
  const Answer answer = answer_to(shared_card());
  double sum = 0;
  for (std::size_t rank = 0; rank < answer.bubble_s.size(); ++rank) {
    CHECK(answer.bubble_s[rank] == Approx(bubble_per_rank(timeline_of(answer.table))[rank].value));
    sum += answer.bubble_s[rank];
  }
  CHECK(answer.figures.bubble_s == Approx(sum / 4));
  CHECK(std::accumulate(answer.figures.idle_s.begin(), answer.figures.idle_s.end(), 0.0) ==
        Approx(answer.figures.bubble_s));
  CHECK(answer.figures.peak == answer.memory.highest_peak());
  CHECK(answer.figures.unit == "tokens");
  CHECK(answer.bound.empty());
  CHECK(answer.notes.empty());
  const int event = answer.critical.front();
  CHECK(answer.table.name_at(answer.places[static_cast<std::size_t>(event)]) ==
        to_string(*answer.plan.structure->events()[event].instruction));
}

TEST_CASE("Too large a plan is answered with unshared links, and a note says so",
          "[loop][what_if]") {
  const Draft draft = shared_card();
  WhatIf quick(100);
  const Answer bound = answered(quick.answer(draft)), exact = answer_to(draft);
  CHECK(bound.bound.find("lower bound") != std::string::npos);
  CHECK(exact.bound.empty());
  CHECK(bound.times.iteration < exact.times.iteration);
}

TEST_CASE("Another microbatch size scales the measured costs, and a note says so",
          "[loop][what_if]") {
  const Draft eight = changed(shared_card(), "training.microbatch_size=8");
  const Answer answer = answer_to(eight);
  REQUIRE(answer.notes.size() == 1);
  CHECK(answer.notes[0] ==
        "costs were measured for microbatches of 4; for 8, times and activations are scaled "
        "linearly");
  CHECK(answer.costs.layers[1].forward.value == 2 * eight.costs->layers[1].forward.value);
  CHECK(answer.times.iteration > 1.9 * answer_to(shared_card()).times.iteration);
  CHECK(eight.costs->microbatch_size == 4);  // the measured costs are unchanged
}

TEST_CASE("A draft without costs is answered from the model, and a note says so",
          "[loop][what_if]") {
  Draft draft = shared_card();
  draft.costs.reset();
  const Answer answer = answer_to(draft);
  REQUIRE(answer.notes.size() == 1);
  CHECK(answer.notes[0] == models::estimate_note(draft.scenario));
  CHECK(models::is_estimated(answer.costs));
  const Answer larger = answer_to(changed(draft, "model.blocks=14"));
  CHECK(larger.costs.layers.size() == 16);
  CHECK(larger.times.iteration > 1.5 * answer.times.iteration);
}

TEST_CASE("Impossible changes are rejected with an error message", "[loop][what_if]") {
  WhatIf what_if;
  CHECK(error_of([] {
          changed(shared_card(), "pipeline.ranks=9");
        }).find("9 ranks asked for, but the model has 8 layers") != std::string::npos);
  const auto deadlock = refused(what_if.answer(
      shared_card({"pipeline.communicators=pair", "pipeline.transfers=rendezvous"})));
  CHECK(deadlock.text.find(" waits for ") != std::string::npos);
  CHECK_FALSE(deadlock.for_memory);
  const auto costs = refused(what_if.answer(shared_card({"model.blocks=7"})));
  CHECK(costs.text == "the costs are for 8 layers, but the model has 9");
}

TEST_CASE("An answer also reports too little memory, with the change that fits",
          "[loop][what_if]") {
  const Draft free = shared_card({"pipeline.replicas=1"});
  const auto peak = answer_to(free).memory.highest_peak();
  WhatIf what_if;
  const Draft tight =
      changed(free, fmt::format("cluster.device.memory_bytes={}", peak.value - 10'000'000));
  const Answer answer = answered(what_if.answer(tight));
  REQUIRE(answer.over.has_value());
  CHECK(answer.over->peak == peak);
  const auto remedy = what_if.remedy(tight);
  REQUIRE(remedy.has_value());
  CHECK(sim::refusal(*answer.over, remedy).find(remedy->assignment + " fits, with ") !=
        std::string::npos);
  const Answer fits = answered(what_if.answer(changed(tight, remedy->assignment)));
  CHECK_FALSE(fits.over.has_value());
  CHECK(fits.times.iteration == remedy->need.iteration.value);
  CHECK(fits.memory.highest_peak() == remedy->need.peak);
  CHECK_FALSE(what_if.remedy(free).has_value());
}

TEST_CASE("An error about too little permanent memory proposes a change that fits",
          "[loop][what_if]") {
  WhatIf what_if;
  const Draft tight =
      shared_card({"pipeline.ranks=2", "pipeline.replicas=2", "training.optimizer=adamw",
                   "cluster.device.memory_bytes=1000000"});
  const auto refusal = refused(what_if.answer(tight));
  CHECK(refusal.text.find("before any activation") != std::string::npos);
  CHECK(refusal.for_memory);
}

TEST_CASE("A boundary is moved by hand, and stays until the number of stages changes",
          "[loop][what_if]") {
  const Draft draft = shared_card();
  const auto boundaries = answer_to(draft).plan.partition.boundaries;
  const Draft moved = with_boundary(draft, boundaries, 2, boundaries[2] + 1);
  CHECK(answer_to(moved).plan.partition.boundaries[2] == boundaries[2] + 1);
  CHECK(changed(moved, "pipeline.microbatches=8").scenario.pipeline.partition ==
        moved.scenario.pipeline.partition);
  CHECK(changed(moved, "pipeline.ranks=2").scenario.pipeline.partition ==
        plan::PartitionChoice("profile"));
  CHECK(changed(moved, "pipeline.partition=uniform").scenario.pipeline.partition ==
        plan::PartitionChoice("uniform"));
  CHECK(error_of([&] {
          with_boundary(draft, {0, 2, 5, 8}, 1, 5);
        }) ==
        "with boundary 1 at layer 5, stage 1 would have no layer: the boundary can be at 1 to 4");
  CHECK(error_of([&] {
          with_boundary(draft, {0, 2, 5, 8}, 2, 2);
        }) ==
        "with boundary 2 at layer 2, stage 1 would have no layer: the boundary can be at 3 to 7");
  CHECK(error_of([&] {
          with_boundary(draft, {0, 2, 5, 8}, 3, 8);
        }) == "there is no boundary 3 to move: 3 stages have 1 to 2");
}

TEST_CASE("Speeds by rank and lengths by microbatch stay while their number stays",
          "[loop][what_if]") {
  const Draft draft =
      shared_card({"cluster.rank_speeds=[1,1,0.5,1]", "cluster.rank_memory_bytes=[1e9,0,0,1e9]",
                   "pipeline.microbatches=2", "training.microbatch_lengths=[1,3]"});
  const Draft other = changed(draft, "pipeline.ranks=2");
  CHECK(other.scenario.cluster.rank_speeds.empty());
  CHECK(other.scenario.cluster.rank_memory.empty());
  CHECK(changed(draft, "pipeline.schedule=gpipe").scenario.cluster.rank_memory.size() == 4);
  CHECK(other.scenario.training.microbatch_lengths.size() == 2);
  CHECK(changed(draft, "pipeline.schedule=gpipe").scenario.cluster.rank_speeds.size() == 4);
  CHECK(changed(draft, "cluster.rank_speeds=[]").scenario.cluster.rank_speeds.empty());
  CHECK(changed(draft, "pipeline.microbatches=4").scenario.training.microbatch_lengths.empty());
}

TEST_CASE("link.latency is that of both links", "[loop][what_if]") {
  const Draft draft = changed(shared_card(), "link.latency=0.25");
  CHECK(draft.scenario.cluster.within_node.latency.value == 0.25);
  CHECK(draft.scenario.cluster.between_nodes.latency.value == 0.25);
}

TEST_CASE("The difference of two answers is described in words", "[loop][what_if]") {
  search::Figures before, after;
  before.iteration_s = 0.1;
  after.iteration_s = 0.0969;
  before.bubble_s = 0.02;
  after.bubble_s = 0.0191;
  before.idle_s[static_cast<std::size_t>(plan::IdleCause::WarmUp)] = 0.0011;
  after.idle_s[static_cast<std::size_t>(plan::IdleCause::Transfer)] = 0.0002;
  before.peak = {1'000'000};
  after.peak = {3'000'000};
  CHECK(difference(before, after).text ==
        "iteration -3.100 ms (-3.1 %), bubble -900.0 µs (warm-up -1.100 ms, transfer +200.0 µs), "
        "peak +2.000 MB");
  CHECK(difference(before, after).peak.value == 2'000'000);
  CHECK(difference(before, before).text == "no difference");
}

}  // namespace what_if_test
