// Compares the executor with the simulator's prediction when every action takes a fixed time: paced
// layers, a thread per rank, every schedule that trains. Prints one JSON line each.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "exec/support/paced_pipeline.hpp"
#include "pipewright/loop/record/link_report.hpp"
#include "pipewright/loop_torch/measured_links.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/statistics.hpp"

namespace {

using namespace pipewright;

struct Options {
  std::vector<std::string> schedules = plan::schedule_names();
  int ranks = 8;
  int microbatches = 32;
  double milliseconds = 5;  // of each F, I and W
  int steps = 5;            // measured, after one warm-up step
  int shards = 1;           // tensor-parallel ranks; multiplies the threads
};

/// The excess of paced actions over their nominal time: the thread wakes late, and autograd walks
/// the graph.
class Lateness {
 public:
  explicit Lateness(double pace) : pace_(pace) {}

  void add(const exec::InstructionRecord& record) {
    const int sleeps = sleeps_in(record.instruction.kind);
    seconds_ +=
        sleeps == 0 ? 0 : (record.end - record.start - record.shards).value - sleeps * pace_;
    sleeps_ += sleeps;
    among_shards_ += record.shards.value;
  }
  void add(const Lateness& other) {
    seconds_ += other.seconds_;
    sleeps_ += other.sleeps_;
    among_shards_ += other.among_shards_;
  }
  plan::Seconds mean() const { return {seconds_ / sleeps_}; }
  plan::Seconds among_shards() const { return {among_shards_}; }

 private:
  static int sleeps_in(plan::InstructionKind kind) {
    using Kind = plan::InstructionKind;
    if (kind == Kind::Backward)
      return 2;
    return kind == Kind::Forward || kind == Kind::InputGradient || kind == Kind::WeightGradient;
  }

  double pace_;
  double seconds_ = 0;
  int sleeps_ = 0;
  double among_shards_ = 0;
};

struct Measurement {
  std::vector<double> seconds;  // of each step
  plan::Seconds late;           // mean over all actions
  plan::Seconds among_shards;   // per rank and step, including waiting
};

/// Returns the time of a sum of one number over tensor-parallel ranks that are threads and compute
/// nothing.
plan::Seconds sum_of_shards(const Options& options) {
  if (options.shards == 1)
    return {};
  const auto samples =
      loop::links_in_process(options.shards, {.limits = {.largest = {4096}, .within = {4}}});
  const plan::RingTime sum =
      plan::shard_sum_time(loop::measured_link(samples).link, {sizeof(float)}, options.shards);
  return sum.held + sum.latency;
}

Measurement measure(const test::PacedPipeline& pipeline, const Options& options) {
  // Each rank writes only to its own entry, so no lock is needed.
  const std::size_t threads =
      pipeline.program.ranks.size() * static_cast<std::size_t>(options.shards);
  std::vector<Lateness> late(threads, Lateness(options.milliseconds * 1e-3));
  exec::Executor executor(pipeline.program, pipeline.partition, pipeline.setup,
                          {.observer =
                               [&](const exec::InstructionRecord& record) {
                                 late[static_cast<std::size_t>(record.rank)].add(record);
                               },
                           .shards = options.shards});
  executor.step(0);
  late.assign(late.size(), Lateness(options.milliseconds * 1e-3));
  Measurement measured;
  for (int step = 1; step <= options.steps; ++step)
    measured.seconds.push_back(executor.step(step).value().duration.value);
  for (std::size_t rank = 1; rank < late.size(); ++rank)
    late.front().add(late[rank]);
  measured.late = late.front().mean();
  measured.among_shards =
      late.front().among_shards() * (1.0 / static_cast<double>(threads) / options.steps);
  return measured;
}

plan::Json compare(const plan::ScheduleRequest& request, const Options& options,
                   plan::Seconds sum) {
  const plan::Seconds pace{options.milliseconds * 1e-3};
  auto pipeline = test::paced_pipeline(request, {pace, pace, pace});
  pipeline.costs = test::paced_costs(plan::stage_count(pipeline.program), options.ranks,
                                     {pace, pace, pace}, sum);
  const double predicted = test::predicted_time(pipeline).value;
  const Measurement measured = measure(pipeline, options);
  const double typical = plan::median(measured.seconds);

  // The remaining error once the simulator knows how long the actions took here.
  const plan::Seconds taken = pace + measured.late;
  pipeline.costs = test::paced_costs(plan::stage_count(pipeline.program), options.ranks,
                                     {taken, taken, taken}, sum);
  return {{"schedule", request.name},
          {"predicted_s", predicted},
          {"measured_s", typical},
          {"fastest_s", *std::min_element(measured.seconds.begin(), measured.seconds.end())},
          {"over_predicted", typical / predicted},
          {"late_us", measured.late.value * 1e6},
          {"sum_of_shards_us", sum.value * 1e6},
          {"among_shards_s", measured.among_shards.value},
          {"over_predicted_with_late", typical / test::predicted_time(pipeline).value}};
}

void run(const Options& options) {
  const plan::Seconds sum = sum_of_shards(options);
  for (const std::string& name : options.schedules) {
    plan::ScheduleRequest request;
    request.name = name;
    request.ranks = options.ranks;
    request.microbatches = options.microbatches;
    plan::Json line;
    try {
      line = compare(request, options, sum);
    } catch (const plan::InputError& refusal) {
      line = {{"schedule", name}, {"refused", refusal.what()}};
    }
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App program("Times paced pipelines against their prediction; one JSON line per schedule.");
  program.add_option("--schedule", options.schedules, "Any schedules (default: all)");
  const auto add_size = [&](const std::string& name, auto& value, const std::string& help) {
    program.add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  add_size("--ranks", options.ranks, "Threads");
  add_size("--shards", options.shards, "Of each rank's stages, each a thread");
  add_size("--microbatches", options.microbatches, "Of a step");
  add_size("--ms", options.milliseconds, "What F, I and W take each");
  add_size("--steps", options.steps, "Measured, after one to warm up");
  CLI11_PARSE(program, argc, argv);
  run(options);
  return 0;
}
