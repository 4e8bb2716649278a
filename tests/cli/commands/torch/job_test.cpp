// Training as one process per rank, through the command line.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/support/program.hpp"
#include "cli/support/shards_told.hpp"
#include "pipewright/loop/record/run_directory.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"

namespace job_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using test::small_gpt;
using test::TempFolder;

/// Returns the small GPT's costs, measured once for all tests of this file.
const std::string& costs_file() {
  static const TempFolder folder;
  static const std::string file = [] {
    auto name = (folder.path() / "costs.json").string();
    REQUIRE(run_program(small_gpt("profile", {"--over", "0", "-o", name})).exit_code == 0);
    return name;
  }();
  return file;
}

std::vector<std::string> train(const std::vector<std::string>& assignments,
                               const std::vector<std::string>& options) {
  std::vector<std::string> more{"--costs", costs_file()};
  for (const std::string& assignment : assignments)
    more.insert(more.end(), {"--set", assignment});
  more.insert(more.end(), options.begin(), options.end());
  return small_gpt("train", more);
}

TEST_CASE("train --processes --verify finds the bits of serial training", "[cli][job]") {
  for (const auto& wish : std::vector<std::vector<std::string>>{
           {"pipeline.schedule=1f1b"},
           {"pipeline.schedule=zbv", "training.clip_norm=0.1"},
           {"pipeline.tensor=2", "pipeline.schedule=dualpipe", "pipeline.microbatches=8"},
           {"pipeline.replicas=2", "training.zero=1", "training.recompute=full"},
           {"pipeline.tensor=2", "pipeline.schedule=zbv", "training.clip_norm=0.1"},
           {"pipeline.replicas=2", "pipeline.tensor=2", "training.zero=1"},
           {"pipeline.replicas=2", "pipeline.tensor=2",
            R"(pipeline.axes=["tensor","context","data","pipe"])"},
           {"pipeline.replicas=2", "training.zero=2"},
           {"pipeline.replicas=2", "training.zero=3", "pipeline.schedule=interleaved-1f1b"},
           {"pipeline.communicators=pair", "pipeline.schedule=gpipe"}}) {
    const auto result = run_program(train(wish, {"--processes", "--verify"}));
    CAPTURE(wish, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
  }
}

TEST_CASE("train --processes --trace puts all ranks on one clock, causes before effects",
          "[cli][job]") {
  const TempFolder folder;
  const auto file = (folder.path() / "measured.json").string();
  const auto result = run_program(train({}, {"--processes", "--trace", file}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto timeline = plan::timeline_from_trace(plan::JsonDocument::read(file));
  CHECK(timeline.ranks == 2);
  // Both ranks read the machine's clock.
  CHECK(result.err.find("offsets known to 0 us, 0 us unexplained") != std::string::npos);
  const auto find = [&](const std::string& action) {
    for (const plan::Span& span : timeline.spans)
      if (span.action == action)
        return span;
    FAIL(action << " is missing");
    return plan::Span{};
  };
  for (const char* m : {"0", "1", "2", "3"}) {
    CHECK(find(std::string("0F") + m).end <= find(std::string("1F") + m).start);
    CHECK(find(std::string("1B") + m).end <= find(std::string("0B") + m).start);
  }
}

/// Returns the bytes of a stage's gradients if those of each microbatch are reduced during compute:
/// on busy cores they still exist when the next microbatch's are computed.
double summed_beside(const std::vector<std::string>& wish, const loop::StoredRun& run,
                     const std::vector<int>& boundaries, std::size_t rank) {
  if (wish.back() != "training.zero=2" && wish.back() != "training.zero=3")
    return 0;
  double bytes = 0;
  for (int layer = boundaries[rank]; layer < boundaries[rank + 1]; ++layer)
    bytes += static_cast<double>(
        run.rehearsed_costs->layers[static_cast<std::size_t>(layer)].parameters.value);
  return bytes;
}

TEST_CASE("run --processes runs the whole loop as a job, rehearsed and verified", "[cli][job]") {
  for (const auto& wish : std::vector<std::vector<std::string>>{
           {"--set", "pipeline.schedule=1f1b"},
           {"--set", "pipeline.schedule=zbv"},
           {"--set", "pipeline.replicas=2", "--set", "training.zero=1"},
           {"--set", "pipeline.replicas=2", "--set", "training.zero=2"},
           {"--set", "pipeline.replicas=2", "--set", "training.zero=3"}}) {
    const TempFolder folder;
    const auto out = folder.path() / "run";
    auto words = wish;
    words.insert(words.end(), {"--processes", "--verify", "--json", "--out", out.string()});
    const auto result = run_program(small_gpt("run", words));
    CAPTURE(wish, result.err);
    REQUIRE(result.exit_code == 0);
    const auto report = json::parse(result.out);
    CHECK(report["verify"]["bit_identical"] == true);
    CHECK(report["steps_measured"] == 2);  // of four
    const auto& parts = report["error_parts_percent"];
    CHECK(parts["layers"].get<double>() + parts["launch"].get<double>() +
              parts["transfers_and_waiting"].get<double>() ==
          Approx(report["error_percent"]["iteration_s"].get<double>()));
    const loop::StoredRun run = loop::read_run(out);
    REQUIRE(run.rehearsed_costs);
    for (const plan::LayerCost& layer : run.rehearsed_costs->layers)
      CHECK(layer.forward > plan::Seconds{});
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const double predicted = report["predicted"]["peak_bytes"][rank];
      const double measured = report["measured"]["peak_bytes"][rank];
      CHECK(measured > 0.95 * predicted);
      CHECK(measured < 1.05 * predicted + summed_beside(wish, run, report["boundaries"], rank));
    }
    // Both timelines contain all ranks.
    CHECK(run.measured->ranks == 2);
    CHECK(run.measured->spans.size() == run.predicted.spans.size());
  }
}

TEST_CASE("run --processes with tensor parallelism runs the whole loop as a job, verified",
          "[cli][job]") {
  const TempFolder folder;
  const auto out = folder.path() / "run";
  const auto result =
      run_program(small_gpt("run", {"--set", "pipeline.tensor=2", "--set", test::with_shards_told,
                                    "--processes", "--verify", "--json", "--out", out.string()}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["verify"]["bit_identical"] == true);
  const loop::StoredRun run = loop::read_run(out);
  CHECK(run.measured->ranks == 2);  // the first tensor-parallel rank of each
  CHECK(run.measured->spans.size() == run.predicted.spans.size());
  test::check_shards_told(report, run.predicted, *run.measured);
}

TEST_CASE("Killing one tensor-parallel process ends the job", "[cli][job]") {
  const test::Running running(
      train({"training.steps=100000", "pipeline.ranks=1", "pipeline.tensor=2"},
            {"--processes", "--timeout", "3"}));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (running.err().find("step 1/") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto ranks = running.children();
  REQUIRE(ranks.size() == 2);
  kill(ranks[1], SIGKILL);
  const auto result = running.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("rank 1 was ended by signal 9") != std::string::npos);
}

TEST_CASE("Killing a rank ends the job, and one report names the rank", "[cli][job]") {
  const test::Running running(train({"training.steps=100000"}, {"--processes", "--timeout", "3"}));
  // Its second child, in the order in which they were started.
  std::vector<pid_t> ranks;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (running.err().find("step 1/") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const pid_t child : running.children())
    ranks.push_back(child);
  REQUIRE(ranks.size() == 2);
  kill(ranks[1], SIGKILL);
  const auto result = running.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("rank 1 was ended by signal 9") != std::string::npos);
}

TEST_CASE("A job whose size differs from the scenario's is rejected with both numbers",
          "[cli][job]") {
  const test::Running running(
      train({}, {}),
      {{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29400"}});
  const auto result = running.wait();
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("has started 3 processes, but the scenario has 2 ranks") !=
        std::string::npos);
}

TEST_CASE("The error names a rank that was started with different options", "[cli][job]") {
  const auto port = std::to_string(29500 + getpid() % 1000);
  const auto variables = [&](const std::string& rank) {
    return std::map<std::string, std::string>{
        {"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
  };
  const TempFolder folder;
  const test::Running first(train({}, {"--trace", (folder.path() / "t.json").string()}),
                            variables("0"));
  const test::Running second(train({"training.seed=8"}, {}), variables("1"));
  const auto result = first.wait(), other = second.wait();
  CAPTURE(result.err, other.err);
  CHECK(result.exit_code == 2);
  CHECK(other.exit_code == 2);
  const std::string said = result.err + other.err;
  CHECK(said.find("--trace: rank 0 has given; rank 1 has not given") != std::string::npos);
  CHECK(said.find("scenario: rank 0 has") != std::string::npos);
}

TEST_CASE("Processes join a job by the variables of srun and of mpirun", "[cli][job]") {
  const auto port = std::to_string(29500 + getpid() % 1000);
  using Variables = std::map<std::string, std::string>;
  const auto slurm = [&](const std::string& rank) {
    return Variables{{"SLURM_PROCID", rank},
                     {"SLURM_NTASKS", "2"},
                     {"SLURM_LOCALID", rank},
                     {"SLURM_JOB_ID", "7"},
                     {"SLURM_STEP_NODELIST", "127.0.0.1"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", port}};
  };
  const auto mpi = [&](const std::string& rank) {
    return Variables{{"OMPI_COMM_WORLD_RANK", rank},       {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", rank}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", port}};
  };
  for (const auto& variables : {std::function<Variables(const std::string&)>(slurm),
                                std::function<Variables(const std::string&)>(mpi)}) {
    const auto words = train({}, {"--verify"});
    const test::Running first(words, variables("0")), second(words, variables("1"));
    const auto result = first.wait();
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("4 of 4 losses and 54 of 54 parameter tensors") != std::string::npos);
    CHECK(second.wait().exit_code == 0);
  }
}

TEST_CASE("Training continues from a checkpoint under another plan, with the same bits",
          "[cli][job][checkpoint]") {
  const TempFolder folder;
  const auto ckpt = (folder.path() / "ckpt").string();
  struct Leg {
    const char* steps;
    std::vector<std::string> assignments, options;
  };
  // Each leg has another schedule, number of ranks, partition or kind of processes.
  const std::vector<Leg> legs{
      {"2", {"pipeline.schedule=1f1b", "pipeline.ranks=2"}, {"--processes"}},
      {"3", {"pipeline.schedule=zbv", "pipeline.ranks=3"}, {}},
      {"5",
       {"pipeline.schedule=gpipe", "pipeline.ranks=1", "pipeline.replicas=2",
        "pipeline.microbatches=2", "training.zero=1"},
       {"--processes"}},
      {"6",
       {"pipeline.ranks=2", "pipeline.replicas=2", "pipeline.microbatches=2", "pipeline.tensor=2",
        "training.zero=1"},
       {"--processes"}},
      {"7", {"pipeline.ranks=1", "pipeline.tensor=2"}, {}},
      {"8", {"pipeline.schedule=interleaved-1f1b", "pipeline.ranks=2"}, {"--verify"}}};
  for (const Leg& leg : legs) {
    auto assignments = leg.assignments;
    assignments.push_back(std::string("training.steps=") + leg.steps);
    assignments.emplace_back("training.gradient_groups=2");
    assignments.emplace_back("training.tensor_groups=2");
    assignments.emplace_back("training.clip_norm=0.5");
    auto options = leg.options;
    options.insert(options.end(), {"--checkpoints", ckpt, "--resume"});
    const auto result = run_program(train(assignments, options));
    CAPTURE(leg.steps, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.err.find("not bit-identical") == std::string::npos);
    if (leg.assignments.front() == "pipeline.schedule=interleaved-1f1b")
      CHECK(result.out.find("1 of 1 losses and 54 of 54 parameter tensors") != std::string::npos);
  }
  const auto dry =
      run_program(train({"training.optimizer=sgd"}, {"--checkpoints", ckpt, "--dry-run"}));
  CHECK(dry.exit_code == 1);
  CHECK(dry.out.find("cannot be loaded here") != std::string::npos);
}

TEST_CASE(
    "After a rank is killed, training continues under the plan for the remaining ranks, bit for "
    "bit",
    "[cli][job][checkpoint]") {
  const TempFolder folder;
  const auto ckpt = (folder.path() / "ckpt").string(), next = (folder.path() / "next").string();
  const std::vector<std::string> setup{"pipeline.ranks=3", "pipeline.schedule=1f1b",
                                       "training.steps=200", "training.clip_norm=0.5"};
  const auto undisturbed = run_program(train(setup, {"--json"}));
  REQUIRE(undisturbed.exit_code == 0);

  const test::Running killed(train(
      setup, {"--processes", "--timeout", "3", "--checkpoints", ckpt, "--checkpoint-every", "5"}));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(folder.path() / "ckpt" / "step_00000010") &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto ranks = killed.children();
  REQUIRE(ranks.size() == 3);
  kill(ranks[1], SIGKILL);
  CHECK(killed.wait().exit_code == 1);

  std::vector<std::string> replan{
      "--costs", costs_file(), "--replan", "--lost", "1",  "--checkpoints",
      ckpt,      "--step",     "200",      "-o",     next, "--json"};
  for (const std::string& assignment : setup)
    replan.insert(replan.end(), {"--set", assignment});
  const auto planned = run_program(small_gpt("plan", replan));
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  const json plan = json::parse(planned.out);
  CHECK(plan.at("plans")[0].at("gpus").get<int>() <= 2);
  const int from = plan.at("replan").at("checkpoint").at("step");
  CHECK(from >= 10);
  CHECK(plan.at("replan").at("repeated_steps") == 200 - from);

  const auto resumed =
      run_program({"train", next + "/scenario.json", "--costs", next + "/costs.json",
                   "--checkpoints", ckpt, "--resume", "--json"});
  CAPTURE(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.err.find("not bit-identical") == std::string::npos);
  const json all = json::parse(undisturbed.out).at("loss"),
             rest = json::parse(resumed.out).at("loss");
  REQUIRE(rest.size() == 200 - static_cast<std::size_t>(from));
  for (std::size_t step = 0; step < rest.size(); ++step)
    REQUIRE(rest[step] == all[step + static_cast<std::size_t>(from)]);
}

TEST_CASE(
    "If the first checkpoint was never completed, a resumed training starts from the beginning",
    "[cli][job][checkpoint]") {
  const TempFolder folder;
  const auto ckpt = folder.path() / "ckpt";
  std::filesystem::create_directories(ckpt / "step_00000002.killed.tmp");
  const auto result =
      run_program(train({}, {"--checkpoints", ckpt.string(), "--resume", "--verify"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(
      result.err.find("step_00000002.killed.tmp: incomplete: its job ended while it was written") !=
      std::string::npos);
  CHECK(result.err.find("starting with step 0") != std::string::npos);
  CHECK(result.out.find("54 of 54 parameter tensors") != std::string::npos);
}

TEST_CASE("A damaged checkpoint is named, and the previous one is used", "[cli][job][checkpoint]") {
  const TempFolder folder;
  const auto ckpt = folder.path() / "ckpt";
  REQUIRE(run_program(train({}, {"--checkpoints", ckpt.string(), "--checkpoint-every", "2"}))
              .exit_code == 0);
  std::filesystem::resize_file(ckpt / "step_00000004" / "layer_001.safetensors", 100);
  const auto result =
      run_program(train({}, {"--checkpoints", ckpt.string(), "--resume", "--verify"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("layer_001.safetensors") != std::string::npos);
  CHECK(result.err.find("resumed from") != std::string::npos);
  CHECK(result.out.find("2 of 2 losses and 54 of 54 parameter tensors") != std::string::npos);
}

TEST_CASE(
    "The interval of checkpoints minimizes the lost time, given the duration of the first one",
    "[cli][job][checkpoint]") {
  const TempFolder folder;
  const auto auto_every = [&](const char* name, const char* hours) {
    return run_program(train({"training.steps=6"},
                             {"--keep", "9", "--checkpoints", (folder.path() / name).string(),
                              "--checkpoint-every", "auto", "--failure-hours", hours}));
  };
  // A failure each microsecond: a checkpoint after every step from the third on.
  const auto often = auto_every("often", "1e-10");
  CAPTURE(often.err);
  CHECK(often.exit_code == 0);
  CHECK(often.err.find(": one every 1 steps") != std::string::npos);
  // Almost no failures: the checkpoint that is measured, and the last.
  const auto seldom = auto_every("seldom", "1e6");
  CHECK(seldom.exit_code == 0);
  const auto saved = [&](const char* name) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / name))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(saved("often") == std::vector<std::string>{"step_00000003", "step_00000004",
                                                   "step_00000005", "step_00000006"});
  CHECK(saved("seldom") == std::vector<std::string>{"step_00000003", "step_00000006"});
}

TEST_CASE("--checkpoint-every takes a number of steps, or auto with how often the job fails",
          "[cli][job][checkpoint]") {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--checkpoints", "ckpt"});
    return run_program(train({}, words)).err;
  };
  CHECK(said({"--checkpoint-every", "auto"}) ==
        "--checkpoint-every auto needs --failure-hours: the mean time between failures\n");
  CHECK(said({"--checkpoint-every", "2", "--failure-hours", "5"}) ==
        "--failure-hours is only valid with --checkpoint-every auto\n");
  CHECK(said({"--checkpoint-every", "2.5"}) ==
        "--checkpoint-every: \"2.5\" is not a number of steps of at least 1, nor auto\n");
  CHECK(said({"--checkpoint-every", "0"}).find("is not a number of steps") != std::string::npos);
}

}  // namespace job_test
