#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cli/support/program.hpp"
#include "cli/support/shards_told.hpp"
#include "pipewright/loop/record/run_directory.hpp"
#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"

namespace run_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using test::small_gpt;
using test::TempFolder;

TEST_CASE("run --verify finds equal bits for gpipe and 1f1b on 2 and 4 ranks", "[cli][run]") {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (const char* ranks : {"2", "4"}) {
      INFO(schedule << ", " << ranks << " ranks");
      const TempFolder folder;
      const auto out = (folder.path() / "run").string();
      const auto result = run_program(
          small_gpt("run", {"--set", std::string("pipeline.schedule=") + schedule, "--set",
                            std::string("pipeline.ranks=") + ranks, "--verify", "--out", out}));
      REQUIRE(result.exit_code == 0);
      CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
      const auto report = json::parse(test::text_of(out + "/report.json"));
      CHECK(report["verify"]["bit_identical"] == true);
      CHECK(report["ranks"] == std::stoi(ranks));
      CHECK(report["schedule"] == schedule);
    }
}

TEST_CASE("run verifies a schedule's file, and the run's folder can run again without that file",
          "[cli][run]") {
  const TempFolder folder;
  const auto file = folder.write("mine.csv",
                                 "0F0,0F1,0I0,0F2,0I1,0W1,0F3,0I2,0W0,0I3,0W3,0W2\n"
                                 "1F0,1I0,1F1,1I1,1F2,1W1,1I2,1F3,1I3,1W3,1W0,1W2\n");
  const auto out = (folder.path() / "run").string();
  const auto result = run_program(
      small_gpt("run", {"--set", "pipeline.schedule=" + file.string(), "--set", "pipeline.ranks=2",
                        "--set", "pipeline.microbatches=4", "--verify", "--out", out}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto report = json::parse(test::text_of(out + "/report.json"));
  CHECK(report["verify"]["bit_identical"] == true);
  CHECK(report["schedule"] == "mine.csv");
  CHECK(test::text_of(out + "/schedule.csv") == test::text_of(file));
  std::filesystem::remove(file);
  const auto again =
      run_program({"train", out + "/scenario.json", "--costs", out + "/costs.json", "--verify"});
  INFO(again.err);
  CHECK(again.exit_code == 0);
}

TEST_CASE(
    "run lists communication between tensor-parallel ranks separately, predicted and measured",
    "[cli][run]") {
  const TempFolder folder;
  const auto out = (folder.path() / "run").string();
  const auto result =
      run_program(small_gpt("run", {"--set", "pipeline.tensor=2", "--set", test::with_shards_told,
                                    "--json", "--out", out}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const loop::StoredRun run = loop::read_run(out);
  test::check_shards_told(json::parse(result.out), run.predicted, *run.measured);
}

TEST_CASE("run --json prints one document, with the predicted and the measured values",
          "[cli][run]") {
  const TempFolder folder;
  const auto result =
      run_program(small_gpt("run", {"--json", "--out", (folder.path() / "run").string()}));
  REQUIRE(result.exit_code == 0);
  const auto report = json::parse(result.out);
  for (const char* side : {"planned", "predicted", "measured", "error_percent"}) {
    CHECK(report[side]["iteration_s"].is_number());
    for (const char* by_rank : {"busy_s", "bubble_s", "peak_bytes"})
      CHECK(report[side][by_rank].size() == 2);
  }
  double parts = 0;
  for (const auto& [part, percent] : report["error_parts_percent"].items())
    parts += percent.get<double>();
  CHECK(parts == Approx(report["error_percent"]["iteration_s"].get<double>()).margin(1e-6));
  CHECK(report["machine_drift_percent"].is_number());
  CHECK(report["loss"].size() == 4);
  CHECK(report["loss"][3] < report["loss"][0]);
  CHECK_FALSE(report.contains("verify"));
  // Memory does not depend on the machine's current speed.
  for (const auto& error : report["error_percent"]["peak_bytes"])
    CHECK(std::abs(error.get<double>()) < 5);
}

TEST_CASE("run predicts peak memory within 1 per cent for the shipped model",
          "[cli][run][memory]") {
  // looped-bfs sets gradients aside.
  for (const std::string schedule : {"gpipe", "1f1b", "looped-bfs"}) {
    const TempFolder folder;
    const auto result = run_program(
        {"run", test::gpt_scenario, "--set", "training.steps=1", "--set", "pipeline.microbatches=3",
         "--set", "training.microbatch_size=1", "--set", "profile.warm_up=0", "--set",
         "profile.least_repeats=1", "--set", "profile.most_repeats=1", "--set",
         "pipeline.schedule=" + schedule, "--json", "--out", (folder.path() / "run").string()});
    REQUIRE(result.exit_code == 0);
    const auto report = json::parse(result.out);
    CAPTURE(schedule);
    for (const auto& error : report["error_percent"]["peak_bytes"])
      CHECK(std::abs(error.get<double>()) < 1);
  }
}

TEST_CASE("run: every file in the run directory can be read back", "[cli][run]") {
  const TempFolder folder;
  const auto out = folder.path() / "run";
  REQUIRE(run_program(small_gpt("run", {"--out", out.string()})).exit_code == 0);
  const auto open = [&](const char* file) { return plan::JsonDocument::read(out / file); };

  const auto scenario = plan::scenario_from_json(open("scenario.json"));
  CHECK(scenario.training.steps == 4);
  CHECK(plan::layer_costs_from_json(open("costs.json")).layers.size() == 6);
  CHECK(plan::model_from_json(open("model.json")) == plan::model_of(scenario));
  CHECK(plan::stage_count(plan::partition_from_json(open("partition.json")).partition) == 2);
  const auto program = plan::program_from_json(open("program.json"));
  for (const char* trace : {"predicted.trace.json", "measured.trace.json"}) {
    const auto timeline = plan::timeline_from_trace(open(trace));
    CHECK(timeline.ranks == 2);
    // The same Program was timed and run, so both timelines contain the same instructions.
    CHECK(timeline.spans.size() == program.ranks[0].size() + program.ranks[1].size());
  }
  CHECK(test::text_of(out / "timeline.svg").starts_with("<?xml"));

  // Simulates the run again from its own files, without measuring.
  const auto again = run_program({"simulate", (out / "scenario.json").string(), "--costs",
                                  (out / "costs.json").string(), "--json"});
  REQUIRE(again.exit_code == 0);
  const auto report = json::parse(test::text_of(out / "report.json"));
  const auto answer = json::parse(again.out);
  REQUIRE(report["planned"].size() == 4);
  for (const auto& [figure, value] : report["planned"].items())
    CHECK(answer[figure] == value);

  // Samples steps like those that were measured.
  const auto drawn = run_program({"simulate", (out / "scenario.json").string(), "--costs",
                                  (out / "costs.json").string(), "--json", "--draws", "100",
                                  "--jitter", out.string()});
  REQUIRE(drawn.exit_code == 0);
  const auto draws = json::parse(drawn.out)["draws"];
  CHECK(draws["recorded_steps"] == report["steps_measured"]);
  CHECK(draws["p95_s"] >= draws["p50_s"]);

  // The prediction made before the training is kept next to the one from its rehearsals, and has an
  // error.
  const auto planned = plan::timeline_from_trace(open("planned.trace.json"));
  const double planned_s = report["planned"]["iteration_s"];
  CHECK_THAT(planned.length.value, Catch::Matchers::WithinRel(planned_s, 1e-6));
  const auto predicted = plan::timeline_from_trace(open("predicted.trace.json"));
  CHECK(predicted.length != planned.length);
  const double measured_s = report["measured"]["iteration_s"];
  const double planned_error = report["planned_error_percent"]["iteration_s"];
  CHECK_THAT(planned_error, Catch::Matchers::WithinRel(100 * (planned_s / measured_s - 1), 1e-6));

  const std::string page = test::text_of(PIPEWRIGHT_SOURCE_DIR "/docs/run.md");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    INFO(name << " stands in the table of docs/run.md");
    CHECK(page.find('`' + name + '`') != std::string::npos);
    ++files;
  }
  CHECK(files == 15);
}

TEST_CASE("run: the record of its steps holds each pipeline with its computes and transfers",
          "[cli][run]") {
  for (const bool processes : {false, true}) {
    const TempFolder folder;
    const std::string out = (folder.path() / "run").string();
    std::vector<std::string> options{"--out", out, "--set", "pipeline.replicas=2"};
    if (processes)
      options.emplace_back("--processes");
    REQUIRE(run_program(small_gpt("run", options)).exit_code == 0);
    const auto record = models::read_recorded_steps(std::filesystem::path(out) / "steps.csv");
    std::set<std::pair<int, int>> workers;
    int sends = 0;
    for (const auto& operation : record.operations) {
      workers.emplace(operation.replica, operation.rank);
      sends += plan::is_send(operation.instruction.kind) ? 1 : 0;
      for (const double seconds : operation.seconds)
        CHECK(seconds < 10);
    }
    CHECK(workers == std::set<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
    CHECK(sends > 0);
    const auto drawn =
        run_program({"simulate", out + "/scenario.json", "--costs", out + "/costs.json", "--json",
                     "--draws", "100", "--jitter", out});
    REQUIRE(drawn.exit_code == 0);
    CHECK(json::parse(drawn.out)["draws"]["recorded_steps"] == record.steps());
  }
}

TEST_CASE("run --processes: its scenario runs again, with processes and with threads",
          "[cli][run]") {
  const TempFolder folder;
  const std::string out = (folder.path() / "run").string();
  REQUIRE(run_program(small_gpt("run", {"--out", out, "--processes"})).exit_code == 0);
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--processes"}, {}}) {
    std::vector<std::string> words{"train", out + "/scenario.json", "--costs", out + "/costs.json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto again = run_program(words);
    CAPTURE(again.err);
    CHECK(again.exit_code == 0);
  }
}

TEST_CASE("run: Ctrl-C ends training within a second, with 130 and a whole directory",
          "[cli][run]") {
  const TempFolder folder;
  const auto out = folder.path() / "run";
  const test::Running program(
      small_gpt("run", {"--set", "training.steps=1000000", "--out", out.string()}));
  while (program.err().find("training: step 1/") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  program.signal(SIGINT);
  const auto result = program.wait();
  CHECK(result.exit_code == 130);
  CHECK(result.err.find("interrupted after") != std::string::npos);
  const auto report = json::parse(test::text_of(out / "report.json"));
  CHECK(report["interrupted"] == true);
  CHECK(report["loss"].size() >= 1);
  for (const char* file : {"scenario.json", "costs.json", "program.json", "predicted.trace.json",
                           "measured.trace.json", "rehearsed_costs.json", "timeline.svg"})
    CHECK(std::filesystem::exists(out / file));
  for (const auto& entry : std::filesystem::directory_iterator(out))
    CHECK(entry.path().extension() != ".part");
}

TEST_CASE("run rejects bad input with 2 and all errors at once, and writes nothing", "[cli][run]") {
  const TempFolder folder;
  const auto out = folder.path() / "run";
  const auto result = run_program({"run", test::gpt_scenario, "--set", "pipeline.rank=4", "--set",
                                   "pipeline.microbatches=0", "--out", out.string()});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("--set pipeline.rank=4: /pipeline/rank: unknown key \"rank\", did you mean "
                        "\"ranks\"?") != std::string::npos);
  CHECK(result.err.find("/pipeline/microbatches: 0 is not possible") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));

  CHECK(run_program({"run", "no-such-file.json"}).exit_code == 2);
  CHECK(run_program({"run", test::gpt_scenario, "--data", "no-such-text"}).exit_code == 2);
  CHECK(run_program({"run"}).exit_code == 2);
  CHECK(run_program({"rnu"}).exit_code == 2);
}

TEST_CASE("run leaves a directory unchanged that is not empty", "[cli][run]") {
  const TempFolder folder;
  folder.write("precious", "data");
  const auto result = run_program(small_gpt("run", {"--out", folder.path().string()}));
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("already exists and is not empty") != std::string::npos);
}

TEST_CASE("run rejects a device too small for the permanent memory with 2, without simulation",
          "[cli][run]") {
  const TempFolder folder;
  const auto result = run_program(small_gpt("run", {"--set", "cluster.device.memory_bytes=1000",
                                                    "--out", (folder.path() / "run").string()}));
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("before any activation (parameters") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST_CASE(
    "run rejects more memory than the device has with 1, and simulate names a change that fits",
    "[cli][run]") {
  const TempFolder folder;
  const auto costs = (folder.path() / "costs.json").string();
  REQUIRE(run_program(small_gpt("profile", {"--over", "0", "-o", costs})).exit_code == 0);
  const std::vector<std::string> even{"--costs", costs, "--set", "pipeline.partition=uniform"};
  auto asked = even;
  asked.push_back("--json");
  const auto predicted = run_program(small_gpt("simulate", asked));
  REQUIRE(predicted.exit_code == 0);
  std::int64_t most = 0;
  const auto figures = json::parse(predicted.out);
  for (const auto& peak : figures["peak_bytes"])
    most = std::max(most, peak.get<std::int64_t>());

  auto capped = even;
  for (const std::string& word :
       {std::string("--set"), "cluster.device.memory_bytes=" + std::to_string(most * 99 / 100)})
    capped.push_back(word);
  const auto answer = run_program(small_gpt("simulate", capped));
  CHECK(answer.exit_code == 1);
  CHECK(answer.err.find("but its device has") != std::string::npos);
  CHECK(answer.err.find("optimizer state") != std::string::npos);
  CHECK(answer.err.find(" fits, with ") != std::string::npos);

  capped.insert(capped.end(), {"--out", (folder.path() / "run").string()});
  const auto result = run_program(small_gpt("run", capped));
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("but its device has") != std::string::npos);
  CHECK(result.err.find("selective") == std::string::npos);  // not trained yet
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST_CASE("train --verify finds equal bits under every training option", "[cli][run]") {
  const std::vector<std::vector<std::string>> wishes{
      {"pipeline.replicas=2", "training.zero=1"},
      {"pipeline.replicas=2", "training.zero=2", "pipeline.schedule=zb-h1"},
      {"pipeline.replicas=2", "training.zero=3", "pipeline.schedule=zbv"},
      {"pipeline.schedule=zbv", "training.clip_norm=0.1", "training.warm_up_steps=2"},
      {"pipeline.schedule=dualpipe", "pipeline.microbatches=8", "training.decay=cosine"},
      {"pipeline.schedule=looped-bfs", "pipeline.chunks=2", "training.recompute=full"},
      {"pipeline.schedule=zb-h1", "training.precision=mixed", "training.optimizer=sgd-momentum"},
      {"pipeline.replicas=2", "training.gradient_groups=4", "pipeline.overlap_reductions=false"}};
  for (const auto& wish : wishes) {
    std::vector<std::string> words{"--verify"};
    for (const std::string& assignment : wish) {
      INFO(assignment);
      words.insert(words.end(), {"--set", assignment});
    }
    const auto result = run_program(small_gpt("train", words));
    CAPTURE(wish, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
  }
}

TEST_CASE("train trains PipeDream, and --verify reports why it cannot be verified", "[cli][run]") {
  const auto trained = run_program(small_gpt("train", {"--set", "pipeline.schedule=pipedream"}));
  CHECK(trained.exit_code == 0);
  const auto refused =
      run_program(small_gpt("train", {"--set", "pipeline.schedule=pipedream", "--verify"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("pipedream steps without a flush") != std::string::npos);
}

TEST_CASE("train rejects features that only the simulator has so far with 2", "[cli][run]") {
  const auto result = run_program(small_gpt("train", {"--set", "training.jitter=0.1"}));
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("training.jitter is supported in prediction, but not in training by "
                        "threads of one process") != std::string::npos);
}

/// Returns records in CIFAR-10's binary format: 3073 bytes with a label and the pixels.
std::string cifar_records(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>(i % 10) + std::string(3072, static_cast<char>(i * 17));
  return bytes;
}

TEST_CASE("alexnet: partitioned by parameters into [0, 19, 22], trained on CIFAR-10's format",
          "[cli][alexnet]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", cifar_records(8));
  const auto result =
      run_program({"run", test::alexnet_scenario, "--data", folder.path().string(), "--set",
                   "model.image_size=64", "--set", "training.steps=2", "--set", "profile.warm_up=0",
                   "--set", "profile.least_repeats=1", "--set", "profile.most_repeats=1",
                   "--verify", "--json", "--out", (folder.path() / "run").string()});
  REQUIRE(result.exit_code == 0);
  const auto report = json::parse(result.out);
  CHECK(report["boundaries"] == json({0, 19, 22}));
  CHECK(report["verify"]["bit_identical"] == true);
  for (const auto& error : report["error_percent"]["peak_bytes"])
    CHECK(std::abs(error.get<double>()) < 5);
}

TEST_CASE("alexnet: a truncated data file is rejected with its name and size", "[cli][alexnet]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", cifar_records(2).substr(0, 5000));
  const auto result =
      run_program({"run", test::alexnet_scenario, "--data", folder.path().string()});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("data_batch_1.bin") != std::string::npos);
  CHECK(result.err.find("5000") != std::string::npos);
}

}  // namespace run_test
