#include "pipewright/trace/straggler/job_remedies.hpp"

#include <algorithm>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/trace/straggler/straggler_report.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace pipewright::trace::job_remedies_test {

using test::SyntheticJob;

constexpr double ms = 1e-3;

double ten_and_twenty(const JobNode& node) {
  return node.operation == JobOperation::Forward    ? 10 * ms
         : node.operation == JobOperation::Backward ? 20 * ms
                                                    : 0;
}

StragglerReport report_of(const SyntheticJob& job) {
  const test::TempFolder folder;
  std::vector<std::string> problems;
  return explain_stragglers(folder.write("job.json", job.trace()), problems);
}

const Remedy& best(const Remedies& remedies, const std::string& kind) {
  const auto found = std::find_if(remedies.all.begin(), remedies.all.end(),
                                  [&](const Remedy& own) { return own.kind == kind; });
  REQUIRE(found != remedies.all.end());
  return *found;
}

TEST_CASE("Remedies: a slow worker is replaced, or left out with its replica",
          "[loop][straggler]") {
  // dp 2, stage 1 of three replicas takes one and a half times as long as the others.
  const StragglerReport report =
      report_of({.schedule = plan::make_schedule("1f1b", 2, 8),
                 .replicas = 3,
                 .steps = {1, 2, 3, 4},
                 .seconds = [](const JobNode& node, int) {
                   return ten_and_twenty(node) * (node.worker == 5 ? 1.5 : 1);
                 }});
  CHECK(report.over_peers[5] == Approx(1.5));
  CHECK(report.remedies.step_s == Approx((8 * 45 + 30) * ms));
  const Remedy& replaced = best(report.remedies, "replace workers");
  CHECK(replaced.step_s == Approx(9 * 30 * ms));
  CHECK(replaced.on_kept.seconds == Approx(120 * ms));
  CHECK(replaced.on_learnt.part == Approx(120.0 / 390));
  CHECK(replaced.change == "replace dp 2 stage 1 (rank 5, 1.50 times its peers)");
  // Eight more microbatches for two replicas: four each.
  CHECK(best(report.remedies, "leave out a replica").step_s == Approx(13 * 30 * ms));
}

TEST_CASE("Remedies: long microbatches are rebalanced", "[loop][straggler]") {
  // One stage: replica 0 has three times as much to do in every step.
  const StragglerReport report =
      report_of({.schedule = plan::make_schedule("1f1b", 1, 2),
                 .steps = {1, 2},
                 .seconds = [](const JobNode& node, int) {
                   return ten_and_twenty(node) * (node.worker == 0 ? 3 : 1);
                 }});
  CHECK(report.remedies.step_s == Approx(6 * 30 * ms));
  CHECK(best(report.remedies, "deal out microbatches").step_s == Approx(4 * 30 * ms));
  CHECK(best(report.remedies, "even out microbatches").step_s == Approx(4 * 30 * ms));
  // A worker's own microbatches are equally long.
  CHECK(report.lengths.correlation == Approx(0).margin(1e-9));
}

TEST_CASE("Remedies: layers move away from a last stage that also has the head",
          "[loop][straggler]") {
  const StragglerReport report =
      report_of({.schedule = plan::make_schedule("1f1b", 3, 6),
                 .replicas = 1,
                 .steps = {1, 2},
                 .seconds = [](const JobNode& node, int) {
                   return ten_and_twenty(node) * (node.worker == 2 ? 2 : 1);
                 }});
  // The last stage's 60 ms are a head of 30 and four quarters of 7.5.
  CHECK(report.remedies.step_s == Approx((6 * 60 + 2 * 30) * ms));
  const Remedy& moved = best(report.remedies, "move layers");
  CHECK(moved.change ==
        "move stage boundaries: stage 0 gets 1 of its quarters, stage 1 gets 1 of its quarters, "
        "stage 2 "
        "gives 2 of its quarters (quarters of layers by stage: 5, 5, 2)");
  CHECK(moved.step_s == Approx((6 * 45 + 2 * 37.5) * ms));
  // Two chunks per rank shorten the bubble; the head stays with the last of them.
  CHECK(best(report.remedies, "another schedule").saves.part > 0.1);
}

TEST_CASE("Remedies: launch delays explain what a replay of durations does not",
          "[loop][straggler]") {
  // Data are loaded for 8 ms before a step's first forward; optimizers begin 2 ms late, and 4 in
  // the second step.
  const StragglerReport report = report_of(
      {.schedule = plan::make_schedule("1f1b", 2, 4),
       .replicas = 1,
       .steps = {1, 2},
       .seconds = [](const JobNode& node, int) { return ten_and_twenty(node); },
       .delay =
           [](const JobNode& node, int step) {
             if (node.operation == JobOperation::Optimizer)
               return (step == 0 ? 2 : 4) * ms;
             return node.operation == JobOperation::Forward && node.index == 0 && node.worker == 0
                        ? 8 * ms
                        : 0.0;
           }});
  // The step's first event is the first forward itself: the time before it is in no event.
  CHECK(report.steps.measured[0] == Approx(152 * ms));
  CHECK(report.delays.plain_error == Approx((2 + 4) / 2.0 / 150));
  CHECK(report.delays.explained_error == Approx(0).margin(1e-9));
  CHECK(report.delays.kept_error == Approx(2.0 / 152));
  double sum = 0;
  for (const DelayKind& kind : report.delays.kinds) {
    sum += kind.explains_s;
    CHECK(kind.explains_s == Approx(kind.before == "optimizer" ? 3 * ms : 0).margin(1e-9));
  }
  CHECK(sum == Approx(3 * ms));
}

TEST_CASE("A slow machine stays slow with another schedule and with other microbatches",
          "[loop][straggler]") {
  const StragglerReport report =
      report_of({.schedule = plan::make_schedule("1f1b", 2, 4),
                 .steps = {1, 2},
                 .seconds = [](const JobNode& node, int) {
                   return ten_and_twenty(node) * (node.worker == 3 ? 2 : 1);
                 }});
  CHECK(report.own_slowness[3] == Approx(2));
  CHECK(report.own_slowness[1] == Approx(1));
  // All computes of the slow worker, one after the other.
  for (const Remedy& own : report.remedies.all)
    if (own.kind != "replace workers" && own.kind != "move layers" &&
        own.kind != "leave out a replica") {
      INFO(own.change);
      CHECK(own.step_s >= Approx(4 * 60 * ms));
    }
}

TEST_CASE("A worker clearly slower than its peers comes first, whatever its S_w",
          "[loop][straggler]") {
  // Stage 1 takes three times as long as stage 0 everywhere, and dp 2 on stage 0 half as long again
  // as its peers: that costs nothing.
  const StragglerReport report = report_of(
      {.schedule = plan::make_schedule("1f1b", 2, 4),
       .replicas = 3,
       .seconds = [](const JobNode& node, int) {
         return ten_and_twenty(node) * (node.worker >= 3 ? 3 : node.worker == 2 ? 1.5 : 1);
       }});
  CHECK(report.metrics.workers.front() != 2);
  CHECK(report.workers.front() == 2);
  // The reading begins with what costs most.
  CHECK(reading_of(report).starts_with("the last stage is slow: move layers away from it (up to "));
  CHECK(reading_of(report).find("; dp 2, stage 0 (rank 2) computes 1.50 times as long as the same "
                                "stage of the others") != std::string::npos);
}

TEST_CASE("The reading names the largest cause first", "[loop][straggler]") {
  // Microbatches are up to eight times as long as others, and the last stage is a little slow.
  const auto job_with = [](double last_stage, double spread) {
    SyntheticJob job{
        .schedule = plan::make_schedule("1f1b", 4, 8), .replicas = 2, .steps = {1, 2, 3, 4}};
    job.seconds = [=](const JobNode& node, int step) {
      const int length = (7 * node.microbatch + 5 * (node.worker % 2) + 3 * step) % 8;
      return ten_and_twenty(node) * (1 + spread * length) * (node.worker >= 6 ? last_stage : 1);
    };
    return job;
  };
  const StragglerReport lengths = report_of(job_with(1.4, 1));
  CHECK(best(lengths.remedies, "even out microbatches").saves.part >
        best(lengths.remedies, "move layers").saves.part);
  CHECK(reading_of(lengths).starts_with("microbatches differ in length (up to "));
  const StragglerReport stage = report_of(job_with(2, 0.03));
  CHECK(reading_of(stage).starts_with("the last stage is slow: move layers away from it (up to "));
}

TEST_CASE("The reading of a job with one stage has no stage to move layers to",
          "[loop][straggler]") {
  SyntheticJob job{.schedule = plan::make_schedule("1f1b", 1, 4), .replicas = 2, .steps = {1, 2}};
  job.seconds = [](const JobNode& node, int) {
    return ten_and_twenty(node) * (node.worker == 0 ? 1 + 0.4 * node.microbatch : 1);
  };
  const StragglerReport report = report_of(job);
  CHECK(report.metrics.last_stage_explains.share == Approx(1));
  CHECK(reading_of(report).find("stage is slow") == std::string::npos);
}

TEST_CASE("A job's timeline has its slowest worker on top", "[loop][straggler]") {
  const StragglerReport report =
      report_of({.schedule = plan::make_schedule("1f1b", 2, 2),
                 .steps = {7, 9},
                 .seconds = [](const JobNode& node, int) {
                   return ten_and_twenty(node) * (node.worker == 2 ? 1.5 : 1);
                 }});
  const plan::EventTable all = job_timeline(report.steps, report.metrics.workers);
  REQUIRE(all.rank_names.size() == 5);
  CHECK(all.rank_names.front() == "dp 0, stage 1 (rank 2)");
  CHECK(all.rank_names.back() == "all workers");
  CHECK(all.tracks.front().name == "pipeline");
  CHECK(all.name_at(0) == "1F0");
  CHECK(all.tracks.back().name == "steps");
  CHECK(all.name_at(all.tracks.back().begin) == "step 7");
  const plan::EventTable one = job_timeline(report.steps, report.metrics.workers, 9);
  CHECK(one.length.value == Approx(report.steps.measured[1]));
  CHECK_THROWS_WITH(job_timeline(report.steps, report.metrics.workers, 8),
                    "step 8 is not one of the trace's whole steps: 7, 9");
}

}  // namespace pipewright::trace::job_remedies_test
