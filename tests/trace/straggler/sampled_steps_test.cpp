// Checks sampled steps of a job: their distribution where it has a closed form, and, for the job ST
// of ByteDance's StragglerAnalysis, the error on held-out steps.

#include "pipewright/trace/straggler/sampled_steps.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace pipewright::trace::sampled_steps_test {

using test::SyntheticJob;

JobSteps steps_of(const SyntheticJob& job) {
  const test::TempFolder folder;
  std::vector<std::string> problems;
  return job_steps(read_job_trace(folder.write("job.json", job.trace()), problems));
}

/// Returns a pipeline of one rank in which each compute takes a second; `is_slow`: its forward
/// takes three.
SyntheticJob job_with(int replicas, const std::function<bool(int replica, int step)>& is_slow) {
  SyntheticJob job{
      .schedule = plan::make_schedule("1f1b", 1, 1), .replicas = replicas, .steps = {1, 2, 3, 4}};
  job.seconds = [=](const JobNode& node, int step) {
    if (node.operation == JobOperation::Forward)
      return is_slow(node.worker, step) ? 3.0 : 1.0;
    return node.operation == JobOperation::Backward ? 1.0 : 0.0;
  };
  return job;
}

double part_of_long(const sim::Draws& draws) {
  const auto& all = draws.sorted();
  return static_cast<double>(
             std::count_if(all.begin(), all.end(), [](double s) { return s > 3; })) /
         static_cast<double>(all.size());
}

TEST_CASE("Replicas that are slow together or independently in the trace are so in its samples",
          "[loop][straggler]") {
  constexpr int count = 20'000;
  const auto margin = [](double part) { return 5 * std::sqrt(part * (1 - part) / count); };
  const auto together = sample_steps(steps_of(job_with(2, [](int, int step) { return step == 2; })),
                                     {.count = count});
  CHECK(together.together.pipelines == Approx(1));
  const auto draws_of = [&](const SyntheticJob& job) {
    return sample_job(steps_of(job), {.count = count});
  };
  const sim::Draws one_step = draws_of(job_with(2, [](int, int step) { return step == 2; }));
  CHECK(part_of_long(one_step) == Approx(0.25).margin(margin(0.25)));
  CHECK(one_step.sorted().front() == Approx(2));
  CHECK(one_step.sorted().back() == Approx(4));
  CHECK(together.p50_s == Approx(2));
  CHECK(together.p95_s == Approx(4));
  CHECK(together.mean_s == Approx(2.5).margin(2 * margin(0.25)));
  // One replica is slow in two of the steps, the other in two, of which one is the same: they are
  // independent.
  const sim::Draws apart = draws_of(
      job_with(2, [](int replica, int step) { return replica == 0 ? step < 2 : step % 2 == 0; }));
  CHECK(part_of_long(apart) == Approx(0.75).margin(margin(0.75)));
}

TEST_CASE("A delay of all workers together is sampled once, not once per worker",
          "[loop][straggler]") {
  // The norm of the gradients begins late on all workers at once, in each step by another time.
  SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 2), .replicas = 8, .steps = {}};
  for (int step = 0; step < 16; ++step)
    job.steps.push_back(step);
  job.seconds = [](const JobNode& node, int) { return is_compute(node.operation) ? 0.1 : 0.01; };
  job.delay = [](const JobNode& node, int step) {
    return node.operation == JobOperation::Clip ? 0.02 * (step * step % 16) : 0;
  };
  const JobSteps steps = steps_of(job);
  const double measured = mean_of(steps.measured);
  CHECK(sample_job(steps, {.count = 2000}).mean() == Approx(measured).epsilon(0.01));
}

TEST_CASE("Recorded steps of a traced job contain its workers' times", "[loop][straggler]") {
  SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 2), .replicas = 2, .steps = {7, 9}};
  job.seconds = [](const JobNode& node, int step) {
    return node.operation == JobOperation::Forward ? 1.0 + 0.5 * step : 0.25;
  };
  const models::RecordedSteps record = record_of(steps_of(job));
  CHECK(record.numbers == std::vector{7, 9});
  const auto find = [&](int replica, int rank, const char* action) {
    const auto found = std::find_if(
        record.operations.begin(), record.operations.end(), [&](const auto& operation) {
          return operation.replica == replica && operation.rank == rank &&
                 to_string(operation.instruction) == action;
        });
    REQUIRE(found != record.operations.end());
    return found->seconds;
  };
  const auto close = [](const std::vector<double>& seconds, double first, double second) {
    CHECK(seconds.at(0) == Approx(first));
    CHECK(seconds.at(1) == Approx(second));
  };
  close(find(1, 1, "1F1"), 1, 1.5);
  close(find(0, 0, "0B0"), 0.25, 0.25);
  close(find(1, 0, "0SEND_F1"), 0.25, 0.25);
  close(find(0, 1, "1STEP"), 0.25, 0.25);
  CHECK(models::read_recorded_steps(models::to_csv(record), "again.csv") == record);
}

TEST_CASE("Samples of the job ST match its held-out steps", "[loop][straggler][reference]") {
  const auto file = test::reference_file("traces/bytedance-straggler/timeline-ST.json.gz");
  std::vector<std::string> problems;
  const SampledSteps days =
      sample_steps(job_steps(read_job_trace(file, problems)), {.count = 2000});
  CHECK(days.kept_steps == 16);
  CHECK(std::abs(days.kept_mean.error()) < 0.005);
  CHECK(std::abs(days.kept_p50.error()) < 0.01);
  CHECK(std::abs(days.kept_p95.error()) < 0.03);
  fmt::print("draws of ST's steps: P50 {:+.2f} %, P95 {:+.2f} %, mean {:+.2f} %\n",
             100 * days.kept_p50.error(), 100 * days.kept_p95.error(),
             100 * days.kept_mean.error());
}

/// Returns the P95 of the held-out steps, forecast from the other steps of ST, with its confidence
/// interval.
SampledFigure p95_of_others(const JobSteps& steps, const std::vector<std::size_t>& learnt) {
  std::vector<double> others;
  for (std::size_t place = 0; place < steps.numbers.size(); ++place)
    if (std::find(learnt.begin(), learnt.end(), place) == learnt.end())
      others.push_back(steps.measured[place]);
  const JobSteps own = chosen_steps(steps, learnt);
  return {sample_job(own, {.count = 2000}).percentile(0.95), sim::Draws(others).percentile(0.95),
          job_ranges(own).p95};
}

TEST_CASE(
    "A delay in one half of ST's steps is not forecast from the other half, but within its "
    "confidence interval",
    "[loop][straggler][reference]") {
  const auto file = test::reference_file("traces/bytedance-straggler/timeline-ST.json.gz");
  std::vector<std::string> problems;
  const JobSteps steps = job_steps(read_job_trace(file, problems));
  std::vector<std::size_t> places(steps.numbers.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto half = static_cast<std::ptrdiff_t>(places.size() / 2);
  const SampledFigure second = p95_of_others(steps, {places.begin(), places.begin() + half});
  const SampledFigure first = p95_of_others(steps, {places.begin() + half, places.end()});
  CHECK(second.error() == Approx(0.07).margin(0.005));
  CHECK(first.error() == Approx(-0.0655).margin(0.005));
  CHECK(second.range.has(second.measured_s));
  CHECK(first.range.has(first.measured_s));  // 16 steps do not give an upper limit
  // Without the two steps in which an all-reduce waits, the halves agree.
  const JobSteps usual = chosen_steps(steps, {places.begin() + 2, places.end()});
  std::vector<std::size_t> learnt(places.begin(), places.begin() + half - 2);
  CHECK(std::abs(p95_of_others(usual, learnt).error()) < 0.005);
  std::mt19937 random(1);
  int held = 0, near = 0;
  for (int at = 0; at < 40; ++at) {
    std::shuffle(places.begin(), places.end(), random);
    learnt.assign(places.begin(), places.begin() + half);
    std::sort(learnt.begin(), learnt.end());
    const SampledFigure day = p95_of_others(steps, learnt);
    held += day.range.has(day.measured_s) ? 1 : 0;
    near += std::abs(day.error()) < 0.03 ? 1 : 0;
  }
  fmt::print(
      "P95 of ST by halves: second {:+.2f} %, first {:+.2f} %; of 40 at random {} within 3 %, "
      "{} in their range\n",
      100 * second.error(), 100 * first.error(), near, held);
  CHECK(held >= 36);
}

}  // namespace pipewright::trace::sampled_steps_test
