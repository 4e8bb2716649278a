// Two ranks of torch 2.11's Schedule1F1B, traced while they trained
// (tests/torch/trace_pipeline.py): four microbatches, ProfilerStep#2 and #3.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "support/catch.hpp"
#include "trace/support/made_up_job.hpp"
#include "trace/support/synthetic_traces.hpp"

namespace explain_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string rank0 = PIPEWRIGHT_SOURCE_DIR "/scenarios/traces/rank0.json.gz";
const std::string rank1 = PIPEWRIGHT_SOURCE_DIR "/scenarios/traces/rank1.json.gz";

nlohmann::json explained(std::vector<std::string> words) {
  words.insert(words.begin(), "explain");
  words.emplace_back("--json");
  const auto result = run_program(words);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

TEST_CASE("explain: a 1F1B of torch, with its traces given in any order", "[cli][explain]") {
  for (const auto& files : {std::vector{rank0, rank1}, std::vector{rank1, rank0}}) {
    const auto own = explained(files);
    CHECK(own["schedule"] == "1f1b");
    CHECK(own["found_by"] == "operators");
    CHECK(own["microbatches"] == 4);
    CHECK(own["step"] == 3);
    CHECK(own["steps"] == 2);
    // The processes measured 114.6 ms, starting at their barrier.
    CHECK(own["iteration_s"].get<double>() == Approx(0.1146).epsilon(0.01));
    REQUIRE(own["ranks"].size() == 2);
    for (const auto& rank : own["ranks"]) {
      double sum = rank["busy_s"];
      for (const auto& [cause, seconds] : rank["idle_s"].items())
        sum += seconds.get<double>();
      CHECK(sum == Approx(own["iteration_s"].get<double>()).epsilon(1e-9));
    }
    REQUIRE(!own["alternatives"].empty());
    for (const char* key : {"change", "iteration_s"})
      CHECK(own["alternatives"][0].contains(key));
  }
  CHECK(explained({rank0, rank1, "--step", "2"})["step"] == 2);
}

TEST_CASE("explain: the simulator reproduces the result from the written files", "[cli][explain]") {
  const TempFolder folder;
  const std::string out = (folder.path() / "out").string();
  const auto own = explained({rank0, rank1, "-o", out});
  for (const auto& change : own["alternatives"]) {
    std::vector<std::string> words{"simulate", out + "/scenario.json", "--costs",
                                   out + "/costs.json", "--json"};
    std::string field;
    for (const char letter : change["change"].get<std::string>() + " ")
      if (letter != ' ') {
        field += letter;
      } else {
        words.insert(words.end(), {"--set", field});
        field.clear();
      }
    const auto result = run_program(words);
    INFO(change.dump() << '\n' << result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(nlohmann::json::parse(result.out)["iteration_s"].get<double>() ==
          Approx(change["iteration_s"].get<double>()).epsilon(1e-9));
  }
  CHECK(run_program({"schedule", "--check", out + "/schedule.csv"}).exit_code == 0);
  const auto compared = run_program({"compare", out + "/timeline.pwt", out + "/timeline.json"});
  CHECK(compared.exit_code == 0);
}

TEST_CASE("explain prints tables", "[cli][explain]") {
  const auto result = run_program({"explain", rank0, rank1});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with("schedule    1f1b, 2 ranks, 2 stages, 4 microbatches\n"));
  CHECK(result.out.find("no ranges: from operators, arrows and transfers") != std::string::npos);
  CHECK(result.out.find("assumptions:\n- ") != std::string::npos);
}

TEST_CASE("explain rejects traces that it cannot explain as bad input", "[cli][explain]") {
  const TempFolder folder;
  const auto refused = [](std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refused({rank0}).find("it is not the last stage of the pipeline") != std::string::npos);
  CHECK(refused({rank1, rank1}).find("both are of rank 1") != std::string::npos);
  CHECK(refused({rank0, rank1, "--step", "7"}).find("step 7 is not in it; it has 2, 3") !=
        std::string::npos);
  CHECK(refused({rank0, folder.path() / "absent.json"}).find("absent.json") != std::string::npos);
  const auto garbage = folder.write("garbage.json", "\x1f\x8b no gzip");
  CHECK(refused({rank0, garbage}).find("garbage.json") != std::string::npos);
  CHECK(refused({rank0, rank1, "--timeline", "t.png"}).find(".svg") != std::string::npos);
  CHECK(refused({rank0, rank1, "--draws", "10"}).find("--draws needs the trace of a whole job") !=
        std::string::npos);
}

TEST_CASE("explain --draws samples steps from those of a whole job", "[cli][explain]") {
  const TempFolder folder;
  const auto out = folder.path() / "out";
  const auto own = explained({PIPEWRIGHT_SOURCE_DIR "/tests/fuzz/corpus/job_trace/1f1b.json",
                              "--draws", "50", "-o", out.string()});
  const auto& draws = own["straggler"]["draws"];
  CHECK(draws["count"] == 50);
  CHECK(draws["p99_s"] >= draws["p95_s"]);
  CHECK(draws["p95_s"] >= draws["p50_s"]);
  CHECK(draws["other_steps"]["mean_s"][0] <= draws["other_steps"]["mean_s"][1]);
  CHECK(test::text_of(out / "steps.csv").starts_with("step,replica,rank,action,seconds\n"));
}

/// Returns the traces of pipe=2,data=2, in which data 1 takes 50 % longer.
std::vector<std::string> traces_of_replicas(const TempFolder& folder) {
  std::vector<std::string> files(4);
  for (const int replica : {0, 1}) {
    const auto texts =
        test::traces_of(plan::make_schedule("1f1b", 2, 4), {.style = test::TraceStyle::Operators,
                                                            .forward_s = replica == 0 ? 4e-3 : 6e-3,
                                                            .world_size = 4,
                                                            .numbers = {replica, replica + 2}});
    for (const std::size_t stage : {0U, 1U}) {
      const std::size_t rank = 2 * stage + static_cast<std::size_t>(replica);
      files[rank] = folder.write("r" + std::to_string(rank) + ".json", texts[stage]).string();
    }
  }
  return files;
}

TEST_CASE("explain --axes explains the slowest of several pipelines", "[cli][explain]") {
  const TempFolder folder;
  const auto files = traces_of_replicas(folder);
  const std::string timeline = (folder.path() / "job.pwt").string();
  std::vector<std::string> words = files;
  words.insert(words.end(), {"--axes", "pipe=2,data=2", "--timeline", timeline});
  auto own = explained(words);
  REQUIRE(own["pipelines"].size() == 2);
  CHECK(own["slowest"] == 1);
  CHECK(own["pipelines"][1]["axes"] == nlohmann::json{{"data", 1}});
  CHECK(own["pipelines"][1]["ranks"] == nlohmann::json{1, 3});
  CHECK(own["pipelines"][1]["iteration_s"] == own["iteration_s"]);
  CHECK(own["pipelines"][0]["iteration_s"].get<double>() < own["iteration_s"].get<double>());
  CHECK(own["ranks"][1]["rank"] == 3);
  // Everything else equals the explanation of its two files alone.
  auto alone = explained({files[1], files[3]});
  CHECK(alone["slowest"] == 0);
  CHECK(alone["pipelines"][0]["axes"] == nlohmann::json::object());
  for (auto* const json : {&own, &alone})
    for (const char* key : {"pipelines", "slowest"})
      json->erase(key);
  CHECK(own == alone);

  CHECK(run_program({"convert", timeline, (folder.path() / "job.json").string()}).exit_code == 0);
  const auto compared = run_program({"compare", timeline, (folder.path() / "job.json").string()});
  INFO(compared.err);
  CHECK(compared.exit_code == 0);

  words.resize(6);
  words.insert(words.begin(), "explain");
  const std::string text = run_program(words).out;
  INFO(text);
  CHECK(
      text.starts_with("pipeline   iteration, ms     actions  busiest        busy   mean busy  "
                       "ranks\ndata 0  "));
  CHECK(text.find("  1, 3  slowest\n\nthe slowest, data 1:\nschedule    1f1b, 2 ranks") !=
        std::string::npos);
  CHECK(text.find("\n3 (pipe 1, data 1)  ") != std::string::npos);

  const auto refused = run_program({"explain", files[0], files[1], files[2], files[3]});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--axes if they are of several pipelines") != std::string::npos);
}

const std::string dumps = PIPEWRIGHT_TEST_DATA_DIR "/flight_recorder/gloo";

TEST_CASE("explain --hang: a hanging job of torch", "[cli][explain]") {
  const auto result = run_program({"explain", "--hang", dumps});
  CHECK(result.exit_code == 1);
  CHECK(
      result.out.find("rank 1 is at broadcast 2 of group 0 (default_pg), rank 0 at all_reduce 2 of "
                      "group 0 (default_pg)\n\nkind        collective\nrank        1\n") == 0);
  CHECK(
      result.out.find("- rank 0 at all_reduce 2 of group 0 (default_pg) waits for rank 1, which is "
                      "at broadcast 2 of group 0 (default_pg)\n") != std::string::npos);

  const auto json = run_program({"explain", "--hang", "--json", dumps + "/nccl_trace_rank_0"});
  CHECK(json.exit_code == 1);
  const auto own = nlohmann::json::parse(json.out);
  CHECK(own["kind"] == "dead");
  CHECK(own["rank"] == 1);
  CHECK(own["waits"].size() == 1);
}

TEST_CASE("explain --hang: the schedule names stage and microbatch", "[cli][explain]") {
  const TempFolder folder;
  const auto entry = [](const std::string& name, int count, const char* state) {
    return nlohmann::json{
        {"record_id", count - 1}, {"process_group", {"0", "pp"}},     {"collective_seq_id", 0},
        {"p2p_seq_id", count},    {"profiling_name", "nccl:" + name}, {"state", state},
        {"is_p2p", true}};
  };
  const auto dump = [&](const std::string& file, const nlohmann::json& entries) {
    return folder
        .write(file, nlohmann::json{{"version", "2.10"},
                                    {"pg_config", {{"0", {{"desc", "pp"}, {"ranks", "[0, 1]"}}}}},
                                    {"entries", entries}}
                         .dump())
        .string();
  };
  const std::string schedule =
      folder.write("plan.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").string();
  const std::string dump0 =
      dump("rank0.json", {entry("send 0->1", 1, "completed"), entry("send 0->1", 2, "scheduled"),
                          entry("recv 0<-1", 3, "scheduled")});
  nlohmann::json sum = entry("all_reduce", 4, "scheduled");
  sum["is_p2p"] = false;
  const std::string dump1 =
      dump("rank1.json", {entry("recv 1<-0", 1, "completed"), entry("send 1->0", 2, "scheduled"),
                          entry("send 1->0", 3, "scheduled"), sum});
  const auto result =
      run_program({"explain", "--hang", dump0, dump1, "--schedule", schedule, "--json"});
  INFO(result.err);
  CHECK(result.exit_code == 1);
  const auto own = nlohmann::json::parse(result.out);
  CHECK(own["kind"] == "missing receive");
  CHECK(own["rank"] == 1);
  CHECK(own["instruction"] == "1RECV_F1");
  CHECK(own["stage"] == 1);
  CHECK(own["microbatch"] == 1);

  CHECK(run_program({"explain", dump0, dump1, "--schedule", schedule}).exit_code == 2);
  CHECK(run_program({"explain", "--hang", dump0, "--step", "2"}).exit_code == 2);
  const auto refused = run_program({"explain", "--hang", schedule});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("plan.csv: the name does not end in a rank") != std::string::npos);
}

TEST_CASE("explain --hang: the job hangs if operations are open, whatever is left out",
          "[cli][explain]") {
  // Only active entries are kept: ranks 0 and 2 have completed 101 to 103.
  const TempFolder folder;
  const auto write = [&](int rank, int first, int last) {
    auto entries = nlohmann::json::array();
    for (int number = first; number <= last; ++number)
      entries.push_back({{"record_id", 5000 + number - first},
                         {"process_group", {"1", "EP"}},
                         {"collective_seq_id", number},
                         {"profiling_name", "nccl:all_to_all"},
                         {"state", "scheduled"},
                         {"is_p2p", false}});
    folder.write("nccl_trace_rank_" + std::to_string(rank) + ".json",
                 nlohmann::json{{"version", "2.9"},
                                {"pg_config", {{"1", {{"desc", "EP"}, {"ranks", "[0, 1, 2]"}}}}},
                                {"entries", entries}}
                     .dump());
  };
  write(0, 104, 105);
  write(1, 101, 103);
  write(2, 104, 104);
  const auto result = run_program({"explain", "--hang", folder.path().string()});
  CHECK(result.exit_code == 1);
  CHECK(
      result.out.starts_with("rank 1 has issued all_to_all 101 of group 1 (EP), and ranks 0, 2 "
                             "have gone past it: its device makes no progress\n"));
  const auto json = run_program({"explain", "--hang", "--json", folder.path().string()});
  CHECK(nlohmann::json::parse(json.out)["ranks"] == nlohmann::json{1});
}

/// Returns the trace of two replicas of two stages, in which worker 3 (dp 1, stage 1) takes twice
/// as long.
std::string whole_job() {
  const test::SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 4),
                               .steps = {23, 25, 33},
                               .seconds = [](const trace::JobNode& node, int) {
                                 return (trace::is_compute(node.operation) ? 10e-3 : 1e-3) *
                                        (node.worker == 3 ? 2 : 1);
                               }};
  return job.trace();
}

TEST_CASE(
    "explain: the trace of a whole job shows which worker slows it down, and possible remedies",
    "[cli][explain]") {
  const TempFolder folder;
  const std::string file = folder.write("job.json", whole_job()).string();
  const auto own = explained({file})["straggler"];
  CHECK(own["layout"]["world_size"] == 4);
  CHECK(own["schedule"] == "1f1b, 2 ranks, 4 microbatches");
  CHECK(own["S"].get<double>() > 1.2);
  CHECK(own["workers"][0]["dp"] == 1);
  CHECK(own["workers"][0]["stage"] == 1);
  CHECK(own["replay_error_percent"].get<double>() == Approx(0).margin(1e-6));
  REQUIRE(!own["remedies"].empty());
  for (const char* key : {"kind", "change", "saves_s", "saves_on_learnt", "saves_on_kept"})
    CHECK(own["remedies"][0].contains(key));
  CHECK(explained({file, "--steps", "23,33"})["straggler"]["steps"] == nlohmann::json({23, 33}));

  const auto words = run_program({"explain", file});
  CHECK(words.out.find("dp 1, stage 1 (rank 3)") != std::string::npos);
  CHECK(words.out.find("replace dp 1 stage 1") != std::string::npos);
}

TEST_CASE("explain writes a timeline by worker for a whole job", "[cli][explain]") {
  const TempFolder folder;
  const std::string file = folder.write("job.json", whole_job()).string();
  const std::string out = (folder.path() / "out").string();
  explained({file, "-o", out});
  for (const char* name : {"timeline.pwt", "timeline.json", "schedule.csv", "stragglers.json"})
    CHECK(std::filesystem::exists(out + "/" + name));
  const std::string csv = (folder.path() / "job.csv").string();
  REQUIRE(run_program({"convert", file, csv}).exit_code == 0);
  std::ifstream lines(csv);
  std::string head, first;
  std::getline(lines, head);
  std::getline(lines, first);
  CHECK(first.starts_with("0,pipeline,0,1F0,"));  // of the slowest worker
}

TEST_CASE("explain accepts a whole job's trace only as the single file", "[cli][explain]") {
  const TempFolder folder;
  const std::string file = folder.write("job.json", whole_job()).string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", file, rank0},
        {"explain", file, "--axes", "pipe=2"},
        {"explain", file, "--steps", "24"},
        {"explain", rank0, rank1, "--steps", "3"},
        {"explain", file, "--step", "24", "--timeline", folder.path() / "t.pwt"}}) {
    const auto result = run_program(words);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(!result.err.empty());
  }
}

}  // namespace explain_command_test
