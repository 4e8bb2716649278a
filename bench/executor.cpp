// Times the executor on a small GPT, compared with one thread that trains the same batch without a
// pipeline, and prints one JSON line. Its peer is torch_pipelining.py, with the same model,
// partition and keys. Ranks are threads, or processes if RANK, WORLD_SIZE, … are set (as torchrun
// does).
//
// The ideal is the serial time spread evenly over the ranks, plus the schedule's bubble: serial / P
// * (M + P - 1) / M. The excess over it is imbalance, transfers, waiting and overhead.
//
// On one core (taskset -c 0), over_single is the ratio of the ranks' time to one thread's time for
// the same arithmetic, including all collectives of replicas and tensor-parallel ranks (--replicas,
// --tensor).

#include "pipewright/exec/rank/executor.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "pipewright/loop_torch/recorder.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"

namespace pipewright {
namespace {

struct Options {
  int ranks = 2;
  int replicas = 1;
  int tensor = 1;  // tensor-parallel ranks
  std::string schedule = "1F1B";
  int chunks = 1;  // stages per rank
  int microbatches = 8;
  int layers = 8;  // blocks, without embedding and head
  int hidden = 256;
  int heads = 4;
  int sequence = 128;
  int microbatch_size = 4;
  int steps = 4;  // measured steps of each kind in a round
  int rounds = 3;
  bool recording = false;
  bool on_gpu = false;
  std::string kernels = "exact";
};

constexpr int vocabulary = 256;
constexpr int warm_up_steps = 2;

/// Random tokens, the same in every step. The target is the next token; the last one's is the
/// first.
class RandomTokens final : public exec::Dataset {
 public:
  explicit RandomTokens(const Options& options)
      : inputs_(at::randint(
            vocabulary,
            {options.microbatches * options.replicas, options.microbatch_size, options.sequence},
            at::kLong)),
        targets_(inputs_.roll(-1, /*dims=*/2)) {}

  at::Tensor input(int, int microbatch) const override { return inputs_[microbatch]; }
  at::Tensor target(int, int microbatch) const override { return targets_[microbatch]; }

 private:
  at::Tensor inputs_, targets_;
};

plan::Program program_of(const Options& options) {
  plan::ScheduleRequest request;
  request.name = options.schedule;
  request.ranks = options.ranks;
  request.microbatches = options.microbatches;
  request.chunks = options.chunks;
  auto lowering = plan::lowering_of(request);
  lowering.replicas = options.replicas;
  lowering.share_loss = exec::job_from_environment().has_value();  // processes need it
  return plan::lower(plan::make_schedule(request), lowering);
}

/// Returns stages with equal numbers of layers. Halves are rounded to even, as Python's round()
/// does with i * n / stages.
plan::Partition even_partition(int layers, const plan::Program& program) {
  const int stages = plan::stage_count(program);
  if (stages > layers)
    throw plan::InputError(
        fmt::format("{} stages asked for, but the model has {} layers", stages, layers));
  plan::Partition partition;
  for (int stage = 0; stage <= stages; ++stage)
    partition.boundaries.push_back(
        static_cast<int>(std::nearbyint(static_cast<double>(stage) * layers / stages)));
  return partition;
}

/// Pins this thread to the first core it may use, where rank 0 runs too.
void pin_to_first_core() {
  cpu_set_t allowed, own;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET(core, &allowed))
    ++core;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  sched_setaffinity(0, sizeof own, &own);
}

template <typename Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the value below which a share of all values lies; 0.5 gives the median.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

double rounded(double value, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

struct Measurement {
  std::vector<double> iteration, single;  // in seconds; the median of each round
  std::vector<double> recording_ratio;    // recorded over unrecorded, for each pair of steps
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        data_(options),
        setup_(setup()),
        program_(program_of(options)),
        partition_(even_partition(static_cast<int>(setup_.layers.size()), program_)),
        recorder_(program_, exec::JobGrid(options.ranks, options.replicas, options.tensor)),
        transport_(join(job_)),
        pipeline_(program_, partition_, setup_, execution()),
        serial_(setup_, options.microbatches * options.replicas, {},
                options.on_gpu ? exec::on_gpus(1).front() : exec::RankDevice{}) {
    if (options_.recording)
      recorded_.emplace(program_, partition_, setup_, recorded_execution());
    // Last, because threads inherit their cores, and each rank needs its own.
    at::set_num_threads(1);
    pin_to_first_core();
  }

  /// Returns true for the process that measures.
  bool is_first() const { return !job_ || job_->rank() == 0; }
  bool in_job() const { return job_.has_value(); }

  /// Serial and pipelined steps alternate, so that a drift of the machine affects both.
  Measurement measure() {
    for (int i = 0; i < warm_up_steps; ++i) {
      serial_step();
      pipeline_step();
      if (options_.recording)
        recorded_step();
    }
    Measurement measured;
    for (int round = 0; round < options_.rounds; ++round) {
      std::vector<double> single, iteration;
      for (int i = 0; i < options_.steps; ++i)
        single.push_back(serial_step());
      for (int i = 0; i < options_.steps; ++i) {
        if (!options_.recording) {
          iteration.push_back(pipeline_step());
          continue;
        }
        // Each kind comes first in every other pair.
        double recorded = i % 2 == 0 ? recorded_step() : 0;
        iteration.push_back(pipeline_step());
        if (i % 2 != 0)
          recorded = recorded_step();
        measured.recording_ratio.push_back(recorded / iteration.back());
      }
      measured.single.push_back(median(single));
      measured.iteration.push_back(median(iteration));
    }
    return measured;
  }

 private:
  exec::TrainingSetup setup() const {
    exec::TrainingSetup setup;
    setup.layers = engine::gpt_layers({.blocks = options_.layers,
                                       .hidden = options_.hidden,
                                       .heads = options_.heads,
                                       .sequence = options_.sequence,
                                       .vocabulary = vocabulary});
    setup.loss = exec::cross_entropy;
    setup.data = &data_;
    setup.optimizer.learning_rate = 1e-3;
    setup.exact = options_.kernels == "exact";
    setup.tensor_groups = options_.tensor;
    return setup;
  }

  /// Ranks share GPUs if there are fewer.
  std::vector<exec::RankDevice> devices() const {
    return options_.on_gpu ? exec::on_gpus(options_.ranks * options_.replicas * options_.tensor)
                           : std::vector<exec::RankDevice>();
  }

  static std::shared_ptr<exec::Transport> join(std::optional<exec::Job>& job) {
    const auto environment = exec::job_from_environment();
    if (!environment)
      return {};
    job.emplace(*environment);
    return exec::make_gloo_transport(*job);
  }
  exec::ExecutorOptions execution() const {
    exec::ExecutorOptions options;
    options.devices = devices();
    options.replicas = options_.replicas;
    options.shards = options_.tensor;
    options.transport = transport_;
    if (job_)
      options.only_rank = job_->rank();
    return options;
  }

  exec::ExecutorOptions recorded_execution() {
    exec::ExecutorOptions options = execution();
    options.observer = recorder_.observer();
    return options;
  }

  double serial_step() {
    if (!is_first())
      return 0;
    return seconds_of([this] { serial_.step(0); });
  }
  double pipeline_step() {
    return seconds_of([this] { pipeline_.step(0); });
  }
  double recorded_step() {
    return seconds_of([this] { recorder_.end_step(*recorded_->step(0)); });
  }

  Options options_;
  RandomTokens data_;
  exec::TrainingSetup setup_;
  plan::Program program_;
  plan::Partition partition_;
  loop::Recorder recorder_;
  std::optional<exec::Job> job_;
  std::shared_ptr<exec::Transport> transport_;
  exec::Executor pipeline_;
  std::optional<exec::Executor> recorded_;
  exec::SerialTrainer serial_;
};

/// Divides by the ideal within each round, because measurements close in time see the same machine
/// state.
plan::Json report(const Options& options, const Measurement& measured) {
  const double bubble_factor =
      static_cast<double>(options.microbatches + options.ranks - 1) / options.microbatches;
  const int all_ranks = options.ranks * options.replicas * options.tensor;
  std::vector<double> ideal, over_ideal, over_single;
  for (std::size_t round = 0; round < measured.single.size(); ++round) {
    ideal.push_back(measured.single[round] / all_ranks * bubble_factor);
    over_ideal.push_back(measured.iteration[round] / ideal[round]);
    over_single.push_back(measured.iteration[round] / measured.single[round]);
  }
  plan::Json json{{"program", "pipewright"},
                  {"ranks", options.ranks},
                  {"replicas", options.replicas},
                  {"tensor", options.tensor},
                  {"schedule", options.schedule},
                  {"chunks", options.chunks},
                  {"microbatches", options.microbatches},
                  {"layers", options.layers},
                  {"hidden", options.hidden},
                  {"heads", options.heads},
                  {"seq", options.sequence},
                  {"mbs", options.microbatch_size},
                  {"steps", options.steps},
                  {"rounds", options.rounds},
                  {"kernels", options.kernels},
                  {"iteration_s", rounded(median(measured.iteration), 6)},
                  {"single_s", rounded(median(measured.single), 6)},
                  {"ideal_s", rounded(median(ideal), 6)},
                  {"over_ideal", rounded(median(over_ideal), 4)},
                  {"over_single", rounded(median(over_single), 4)}};
  if (options.recording) {
    const auto percent = [&](double share) {
      return rounded(100 * (quantile(measured.recording_ratio, share) - 1), 3);
    };
    json["recording_cost_percent"] = percent(0.5);
    json["recording_cost_quartiles"] = {percent(0.25), percent(0.75)};
    json["recording_pairs"] = measured.recording_ratio.size();
  }
  return json;
}

int main(int argc, char** argv) {
  Options options;
  CLI::App program("Times the executor on a small GPT and prints one JSON line.");
  const auto add_size = [&](const std::string& name, int& value, const std::string& help) {
    program.add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  add_size("--ranks", options.ranks, "Ranks of a pipeline, one thread each");
  add_size("--replicas", options.replicas, "Data-parallel replicas of the pipeline");
  add_size("--tensor", options.tensor, "Tensor-parallel ranks of each stage");
  program.add_option("--schedule", options.schedule, "Upper or lower case")->capture_default_str();
  add_size("--chunks", options.chunks, "Stages per rank");
  add_size("--microbatches", options.microbatches, "Microbatches of a step");
  add_size("--layers", options.layers, "Transformer blocks");
  add_size("--hidden", options.hidden, "Width");
  add_size("--heads", options.heads, "Attention heads");
  add_size("--seq", options.sequence, "Tokens of a sample");
  add_size("--mbs", options.microbatch_size, "Samples of a microbatch");
  add_size("--steps", options.steps, "Measured steps of each kind in a round");
  add_size("--rounds", options.rounds, "Rounds in which serial and pipelined steps alternate");
  program.add_flag(
      "--recording", options.recording,
      "Also measure the cost of recording, with pairs of recorded and unrecorded steps");
  program.add_flag("--gpu", options.on_gpu, "Use this machine's GPUs; ranks are threads");
  program
      .add_option("--kernels", options.kernels,
                  "exact: the same bits each time; default: LibTorch's own choice")
      ->check(CLI::IsMember({"exact", "default"}))
      ->capture_default_str();
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (options.on_gpu)
      exec::on_gpus(1);  // before LibTorch is used
    Bench bench(options);
    const Measurement measured = bench.measure();
    plan::Json line = report(options, measured);
    line["processes"] = bench.in_job();
    if (bench.is_first())
      fmt::print("{}\n", line.dump());
    return 0;
  } catch (const plan::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) { return pipewright::main(argc, argv); }
