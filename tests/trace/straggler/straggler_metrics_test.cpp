// Checks jobs whose steps can be added up by hand, and the job ST of ByteDance's StragglerAnalysis
// against the results that its authors published.

#include "pipewright/trace/straggler/straggler_metrics.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/trace/straggler/straggler_report.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace pipewright::trace::straggler_metrics_test {

using test::error_of;
using test::SyntheticJob;
using test::TempFolder;

constexpr double ms = 1e-3;

/// Durations of gathers and of the operations that end a step: 5 + 1 + 2 + 4 + 3 + 6 ms. Transfers
/// take none.
double around_computes(JobOperation operation) {
  switch (operation) {
    case JobOperation::Gather:
      return 5 * ms;
    case JobOperation::NormSum:
      return 1 * ms;
    case JobOperation::EmbeddingSum:
      return 2 * ms;
    case JobOperation::Scatter:
      return 4 * ms;
    case JobOperation::SeparateSum:
      return 7 * ms;
    case JobOperation::Clip:
      return 3 * ms;
    case JobOperation::Optimizer:
      return 6 * ms;
    default:
      return 0;
  }
}

/// Forwards take 10 ms and backwards 20, on one worker twice that.
test::OfOperation with_slow_worker(int slow) {
  return [slow](const JobNode& node, int) {
    if (!is_compute(node.operation))
      return around_computes(node.operation);
    return (node.operation == JobOperation::Forward ? 10 : 20) * ms * (node.worker == slow ? 2 : 1);
  };
}

JobSteps steps_of(const std::string& trace) {
  const TempFolder folder;
  std::vector<std::string> problems;
  const JobSteps steps = job_steps(read_job_trace(folder.write("job.json", trace), problems));
  CHECK(problems.empty());
  return steps;
}

StragglerMetrics metrics_of(const SyntheticJob& job) {
  return straggler_metrics(steps_of(job.trace()));
}

TEST_CASE("Stragglers: one worker of four takes twice as long", "[loop][straggler]") {
  const int slow = 3;  // dp 1, stage 1
  const StragglerMetrics own = metrics_of({.schedule = plan::make_schedule("1f1b", 2, 4),
                                           .ranks_per_worker = 4,
                                           .seconds = with_slow_worker(slow)});
  // 5 + forward + 4 microbatches on the slow stage + backward + 16; an ideal compute is the mean
  // over four workers: 12.5 and 25 ms.
  const double ideal = (5 + 12.5 + 4 * 37.5 + 25 + 16) * ms;
  const double recorded = (5 + 10 + 4 * 60 + 20 + 16) * ms;
  CHECK(own.ideal_s[index_of(JobOperation::Backward)] == Approx(25 * ms));
  CHECK(mean_of(own.ideal_step_s) == Approx(ideal));
  CHECK(mean_of(own.replayed_s) == Approx(recorded));
  CHECK(own.slowdown.all == Approx(recorded / ideal));
  REQUIRE(own.by_stage.size() == 2);
  CHECK(own.by_stage[0].all == Approx((5 + 10 + 4 * 37.5 + 20 + 16) * ms / ideal));
  CHECK(own.by_stage[1].all == Approx((5 + 12.5 + 4 * 60 + 25 + 16) * ms / ideal));
  CHECK(own.by_replica[0].all == Approx(1));
  CHECK(own.by_replica[1].all == Approx(recorded / ideal));
  CHECK(own.by_worker[3] == Approx(recorded / ideal));
  CHECK(own.by_worker[2] == Approx(1));
  // Among equally slow workers the lower rank comes first.
  CHECK(own.workers == std::vector{3, 2, 0, 1});
  CHECK(own.slowest_workers == 1);
  const double without = (5 + 10 + 4 * 37.5 + 20 + 16) * ms;
  CHECK(own.workers_explain.share == Approx((recorded - without) / (recorded - ideal)));
  CHECK(own.last_stage_explains.share == Approx((recorded - without) / (recorded - ideal)));
  CHECK(own.by_operation.at("gc").all == Approx(1));
  CHECK(own.by_operation.count("forward-pp-comm") == 1);
}

TEST_CASE("Stragglers: a rank has two stages, with and without transfers without a partner",
          "[loop][straggler]") {
  for (const bool outer : {false, true}) {
    plan::ScheduleRequest request;
    request.name = "interleaved-1f1b";
    request.ranks = 2;
    request.microbatches = 4;
    request.chunks = 2;
    const StragglerMetrics own =
        metrics_of({.schedule = plan::make_schedule(request),
                    .replicas = 1,
                    .chunks = 2,
                    .seconds =
                        [](const JobNode& node, int) {
                          return node.operation == JobOperation::Forward    ? 5 * ms
                                 : node.operation == JobOperation::Backward ? 10 * ms
                                                                            : 0;
                        },
                    .outer_transfers = outer});
    // Narayanan et al.: a bubble of (P - 1) / V microbatches.
    CHECK(mean_of(own.replayed_s) == Approx((4 * 30 + 15) * ms));
    CHECK(own.slowdown.all == Approx(1));
  }
}

TEST_CASE("Stragglers: gradients are reduced during the backwards or after them",
          "[loop][straggler]") {
  SyntheticJob job{.schedule = plan::parse_csv("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n", "made up"),
                   .chunks = 2,
                   .seconds =
                       [](const JobNode& node, int) {
                         return node.operation == JobOperation::Forward    ? 5 * ms
                                : node.operation == JobOperation::Backward ? 10 * ms
                                : node.operation == JobOperation::Scatter
                                    ? 15 * ms
                                    : around_computes(node.operation);
                       },
                   .sums_during_backwards = true};
  // The first scatter overlaps with the backwards of the other chunk, which end at 65 ms; the
  // second gather overlaps with the forwards.
  CHECK(mean_of(metrics_of(job).replayed_s) == Approx((65 + 15 + 1 + 2 + 7 + 3 + 6) * ms));
  job.sums_during_backwards = false;
  CHECK(mean_of(metrics_of(job).replayed_s) == Approx((65 + 1 + 2 + 2 * 15 + 3 + 6) * ms));
}

TEST_CASE("Stragglers: a single replica gathers nothing", "[loop][straggler]") {
  SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 4),
                   .replicas = 1,
                   .seconds = with_slow_worker(-1)};
  CHECK(mean_of(metrics_of(job).replayed_s) == Approx((5 * 30 + 1 + 2 + 3 + 6) * ms));
  // Sequence-parallel ranks of a stage share its collectives, and one of them is recorded.
  job.ranks_per_worker = 2;
  CHECK(mean_of(metrics_of(job).replayed_s) == Approx((5 + 5 * 30 + 1 + 2 + 4 + 3 + 6) * ms));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Adds an event of the first worker in a step (default: 23) to the trace.
std::string with_event(std::string trace, JobOperation operation, double begin, double length,
                       int step = 23) {
  const std::string event = SyntheticJob::event({.replicas = 2, .stages = 2},
                                                {.operation = operation}, step, begin, length);
  return trace.insert(1, event + ",\n");
}

TEST_CASE("Stragglers: transfers before the first compute and after the last are ignored",
          "[loop][straggler]") {
  const std::string trace = SyntheticJob{.schedule = plan::make_schedule("1f1b", 2, 4),
                                         .steps = {23},
                                         .seconds = with_slow_worker(-1)}
                                .trace();
  const double before = -10 * ms;  // a clock that is slightly behind
  std::string strays = with_event(trace, JobOperation::ForwardSend, before, 1 * ms);
  strays = with_event(strays, JobOperation::BackwardReceive, 160 * ms, 1 * ms);
  const JobSteps steps = steps_of(strays);
  CHECK(steps.graph.nodes.size() == steps_of(trace).graph.nodes.size());
  CHECK(steps.measured.front() == Approx((171 + 10) * ms));
  CHECK(mean_of(straggler_metrics(steps).replayed_s) == Approx(171 * ms));
}

TEST_CASE("Stragglers: incomplete steps are left out with a reason", "[loop][straggler]") {
  const std::string trace = SyntheticJob{.schedule = plan::make_schedule("1f1b", 2, 4),
                                         .steps = {23, 25, 33},
                                         .seconds = with_slow_worker(-1)}
                                .trace();
  const JobSteps steps =
      steps_of(with_event(trace, JobOperation::Forward, 2 * ms, 1 * ms, /*step=*/25));
  CHECK(steps.numbers == std::vector{23, 33});
  REQUIRE(steps.left_out.size() == 1);
  CHECK(steps.left_out[0].number == 25);
  CHECK(steps.left_out[0].why == "dp 0 stage 0 has 5 of forward-compute, and 4 in most steps");
}

TEST_CASE("Stragglers: an incomplete job is rejected", "[loop][straggler]") {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto refused = [&](std::string trace, const std::string& from, const std::string& to) {
    for (auto at = trace.find(from); at != std::string::npos; at = trace.find(from, at + to.size()))
      trace.replace(at, from.size(), to);
    const auto file = folder.write("job.json", trace);
    return error_of([&] { job_steps(read_job_trace(file, problems)); });
  };
  const std::string trace =
      SyntheticJob{.schedule = plan::make_schedule("1f1b", 2, 2), .seconds = with_slow_worker(-1)}
          .trace();
  CHECK(has(refused(trace, "PP rank 1,", "rank 1,"), "thread (tid) 10 has no thread_name"));
  CHECK(has(refused(trace, R"("pid":1)", R"("pid":2)"),
            "no event of data-parallel rank 1 on stage 0"));
  CHECK(has(refused(trace, "forward-send", "nothing"), "stage 0 has 0 of forward-send in a step"));
  CHECK(has(refused(trace, R"("name":"forward-compute","cat":"forward-compute","pid":1)",
                    R"("name":"nothing","pid":1)"),
            "dp 1 stage 0 has 0 of forward-compute in a step, and dp 0 has 2"));
  CHECK(has(
      refused(trace, "PP rank 1,", "PP rank -1,"),
      "thread_name \"PP rank -1, TP rank 0, row\": the rank in the pipeline (PP) counts from 0"));
  CHECK(has(refused(trace, R"("name":"PP rank 1, TP rank 0, row"}},
{"name":"thread_name","pid":0,"tid":11)",
                    R"("name":"PP rank 1, TP rank 0, row"}},
{"name":"thread_name","pid":0,"tid":10)"),
            "thread (tid) 11 has no thread_name"));
  // Two ranks that partition one stage: each microbatch would count twice.
  CHECK(has(refused(trace, R"("cat":"forward-recv","pid":0,"tid":11)",
                    R"("cat":"forward-recv","pid":0,"tid":16)"),
            "data-parallel rank 0 on stage 1 has events of ranks 2 and 3"));
}

TEST_CASE("Stragglers: durations that a clock's correction made negative are used as recorded",
          "[loop][straggler]") {
  const auto job_with = [](double seconds) {
    return SyntheticJob{.schedule = plan::make_schedule("1f1b", 2, 4),
                        .seconds = [=](const JobNode& node, int step) {
                          return node.operation == JobOperation::ForwardSend && node.index == 1 &&
                                         node.worker == 0
                                     ? seconds * (step + 1)
                                     : with_slow_worker(-1)(node, step);
                        }};
  };
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto file = folder.write("job.json", job_with(-25e-6).trace());
  const StragglerReport report = explain_stragglers(file, problems);
  CHECK(report.negative_events == 2);
  CHECK(report.least_event_s == Approx(-50e-6));
  CHECK(report.steps.numbers.size() == 2);
  CHECK(to_json(report)["negative_durations"]["count"] == 2);
  CHECK(report.metrics.slowdown.all == Approx(1).epsilon(0.01));
  // Recorded steps that are derived from it have no negative durations.
  for (const auto& operation : record_of(report.steps).operations)
    CHECK(*std::min_element(operation.seconds.begin(), operation.seconds.end()) >= 0);
  const auto late = folder.write("late.json", job_with(-2e-3).trace());
  CHECK(has(error_of([&] { read_job_trace(late, problems); }),
            "forward-send takes -0.002 s: the correction of a clock makes durations negative by "
            "0.001 s at most"));
}

TEST_CASE("Stragglers: sizes that overflow are rejected", "[loop][straggler]") {
  // More replicas times stages times steps than can be counted: 2^26 · 2^26 · 2^12.
  std::string trace =
      R"([{"name":"thread_name","pid":0,"tid":0,"ph":"M","args":{"name":"PP rank 67108863, TP rank 0, c"}})";
  for (int step = 0; step < 4096; ++step)
    trace += fmt::format(
        R"(,{{"name":"gc","pid":67108863,"tid":0,"ts":{0},"dur":1,"ph":"X","args":{{"step":{0}}}}})",
        step);
  const TempFolder folder;
  std::vector<std::string> problems;
  CHECK(has(error_of([&] { read_job_trace(folder.write("job.json", trace + "]"), problems); }),
            "4096 steps of 67108864 replicas of 67108864 stages of 1 chunks are more than events"));
}

TEST_CASE("Stragglers: a replica's slowdown is the same next to one ideal replica or all of them",
          "[loop][straggler]") {
  SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 3), .replicas = 4};
  job.seconds = [](const JobNode& node, int step) {
    return is_compute(node.operation)
               ? ms * (10 + (7 * node.worker + 5 * node.index + 3 * step) % 8)
               : around_computes(node.operation) * (1 + node.worker % 3);
  };
  const JobSteps steps = steps_of(job.trace());
  const StragglerMetrics metrics = straggler_metrics(steps);
  const JobTimes ideal = ideal_times(steps.graph, metrics.ideal_s, steps.recorded.steps());
  REQUIRE(metrics.by_replica.size() == 4);
  for (int replica = 0; replica < 4; ++replica) {
    const auto with = replayed_steps(
        steps.graph, chosen_times(steps.graph, steps.recorded, ideal, [&](const JobNode& node) {
          return steps.plan.layout.replica_of(node.worker) == replica;
        }));
    CHECK(metrics.by_replica[static_cast<std::size_t>(replica)].all ==
          mean_of(with) / mean_of(metrics.ideal_step_s));
  }
}

/// Compares and counts all numbers in `expected`.
void compare(const nlohmann::json& expected, const nlohmann::ordered_json& own, int& compared) {
  for (const auto& [key, value] : expected.items()) {
    INFO(key);
    REQUIRE(own.contains(key));
    if (value.is_object())
      compare(value, own[key], compared);
    if (!value.is_number())
      continue;
    // The wait before a step's first transfer is in the published results but not in the trace.
    const double tolerance = has(key, "measured") ? 2e-4 : 1e-6;
    ++compared;
    CHECK(own[key].get<double>() == Approx(value.get<double>()).epsilon(tolerance));
  }
}

TEST_CASE("Stragglers: the job ST has the published results", "[loop][straggler][reference]") {
  const std::string folder = "traces/bytedance-straggler/";
  const auto file = test::reference_file(folder + "timeline-ST.json.gz");
  auto answers =
      nlohmann::json::parse(std::ifstream(test::reference_file(folder + "answers-ST.json")));
  REQUIRE(is_job_trace(file));
  std::vector<std::string> problems;
  const StragglerReport report = explain_stragglers(file, problems);
  const auto own = to_json(report);
  CHECK(own["steps"] == nlohmann::ordered_json(answers["steps"]));
  for (const char* unknown : {"job", "source", "steps"})
    answers.erase(unknown);
  for (const char* missing : {"tp_size", "dsp_size"})
    answers["layout"].erase(missing);
  int compared = 0;
  compare(answers, own, compared);
  CHECK(compared > 500);
  test::report_equal("answers-ST.json", static_cast<std::size_t>(compared),
                     static_cast<std::size_t>(compared), " numbers");
  CHECK(own["replay_error_percent"] < 1e-3);
  CHECK(own["replay_error_percent_learnt"] < 0.05);
}

}  // namespace pipewright::trace::straggler_metrics_test
