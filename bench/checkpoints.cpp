// Measures what checkpoints cost a training that continues meanwhile. Alternates between steps
// without a checkpoint, with one that is written to a local folder, and with one to a folder with a
// limited write rate. For each folder prints one JSON line: how much longer the steps took, and how
// long training paused to copy the state.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/models/gpt.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/statistics.hpp"

namespace {

using namespace pipewright;

struct Sizes {
  int blocks = 4;
  int hidden = 256;
  int ranks = 1;
  int steps = 20;
  int rounds = 5;
  double slow_mb_per_s = 25;
  std::string folder = "/tmp";
};

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// The destination of checkpoints of one kind, and their times.
struct Kind {
  std::string name;
  double most_bytes_per_s = 0;
  std::vector<double> phases{}, pauses{}, writes{};  // in seconds
};

engine::PipelineEngine engine_of(const Sizes& sizes) {
  const plan::GptShape shape{.blocks = sizes.blocks,
                             .hidden = sizes.hidden,
                             .heads = 4,
                             .sequence = 128,
                             .vocabulary = 256};
  return {{engine::gpt_layers(shape),
           {.topology = plan::pipe_data_topology(sizes.ranks, 1),
            .partition = std::string("uniform"),
            .loss = exec::cross_entropy}},
          {.train_batch_size = 8, .microbatch_size = 2}};
}

double steps_of(engine::PipelineEngine& engine, int steps) {
  const auto began = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step)
    engine.train_batch();
  return seconds_since(began);
}

/// Measures steps during one checkpoint, and then the rest of its write without steps.
void measure(engine::PipelineEngine& engine, Kind& kind, const Sizes& sizes,
             const std::filesystem::path& folder) {
  const auto began = std::chrono::steady_clock::now();
  engine.save_checkpoint(folder / kind.name,
                         {.background = true, .most_bytes_per_s = kind.most_bytes_per_s});
  kind.pauses.push_back(seconds_since(began));
  kind.phases.push_back(kind.pauses.back() + steps_of(engine, sizes.steps));
  engine.wait_for_checkpoint();
  kind.writes.push_back(seconds_since(began));
}

void measure_all(const Sizes& sizes) {
  const auto folder = std::filesystem::path(sizes.folder) /
                      fmt::format("pipewright-checkpoints-{}", exec::new_job_id());
  engine::PipelineEngine engine(engine_of(sizes));
  const at::Tensor tokens = at::randint(256, {8, 128}, at::kLong);
  const exec::Batch batch{{tokens}, {tokens.roll(-1, 1)}};
  engine.set_data(exec::RepeatingLoader([batch] { return exec::batches_of(batch, 2); }));
  std::vector<Kind> kinds{{.name = "local"},
                          {.name = "slow", .most_bytes_per_s = 1e6 * sizes.slow_mb_per_s}};
  std::vector<double> alone;
  steps_of(engine, 3);
  for (int round = 0; round < sizes.rounds; ++round) {
    alone.push_back(steps_of(engine, sizes.steps));
    for (Kind& kind : kinds)
      measure(engine, kind, sizes, folder);
  }
  const double without = plan::median(alone);
  const auto bytes = exec::size_of(engine.executor().snapshot(0, /*copied=*/false)).value;
  for (const Kind& kind : kinds) {
    const double with = plan::median(kind.phases);
    fmt::print("{}\n", plan::Json{{"checkpoints", kind.name},
                                  {"bytes", bytes},
                                  {"step_s", without / sizes.steps},
                                  {"steps", sizes.steps},
                                  {"pause_s", plan::median(kind.pauses)},
                                  {"write_s", plan::median(kind.writes)},
                                  {"cost_s", with - without},
                                  {"cost_percent", 100 * (with / without - 1)}}
                           .dump());
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  CLI::App program(
      "Measures how much a checkpoint slows down the steps during which it is written.");
  const auto count = [&](const char* name, int& target, const char* help) {
    program.add_option(name, target, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  count("--blocks", sizes.blocks, "Blocks of the GPT");
  count("--hidden", sizes.hidden, "Hidden size of the GPT");
  count("--ranks", sizes.ranks, "Ranks of the pipeline, one core each");
  count("--steps", sizes.steps, "Steps for each checkpoint");
  count("--rounds", sizes.rounds, "Checkpoints of each kind");
  program.add_option("--slow", sizes.slow_mb_per_s, "Write rate of the slow folder in MB/s")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--folder", sizes.folder, "Folder for the checkpoints")->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  at::set_num_threads(1);
  try {
    measure_all(sizes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
