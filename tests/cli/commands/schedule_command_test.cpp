#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace schedule_command_test {

using namespace pipewright::test;
using nlohmann::json;

json answer(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schedule");
  arguments.push_back("--json");
  const Result result = run_program(arguments);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

std::filesystem::path written(const TempFolder& folder, const std::string& text) {
  const auto file = folder.path() / "theirs.csv";
  std::ofstream(file) << text;
  return file;
}

TEST_CASE("schedule --list prints the table in docs/schedules.md", "[cli][schedule]") {
  const Result result = run_program({"schedule", "--list"});
  CHECK(result.exit_code == 0);
  const std::string page = text_of(PIPEWRIGHT_SOURCE_DIR "/docs/schedules.md");
  CHECK(page.find(result.out) != std::string::npos);
}

TEST_CASE("schedule zb-auto: the longest span, and how far above the shortest possible",
          "[cli][schedule]") {
  const json found = answer({"zb-auto", "--ranks", "4", "--microbatches", "6", "--costs",
                             "10,12,8,1", "--memory-units", "8"});
  CHECK(found["longest_stage_span"] == 234);
  CHECK(found["lower_bound"] <= 234);
  CHECK(found["gap"] >= 0);
  for (const int units : found["memory_units"])
    CHECK(units <= 8);
}

TEST_CASE("schedule --costs accepts a time for every stage", "[cli][schedule]") {
  const json unequal =
      answer({"gpipe", "--ranks", "2", "--microbatches", "1", "--costs", "1/2,3/4,5/6,0.5"});
  CHECK(unequal["iteration_time"] == 1 + 0.5 + 2 + (4 + 6) + 0.5 + (3 + 5));
  const Result wrong = run_program(
      {"schedule", "gpipe", "--ranks", "3", "--microbatches", "1", "--costs", "1/2,1,1"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err ==
        "--costs: times of 2 stages are given, but there are 3: write one time for all, or 3\n");
  CHECK(run_program(
            {"schedule", "gpipe", "--ranks", "3", "--microbatches", "1", "--costs", "1/2/3,1,1/2"})
            .err ==
        "--costs 1/2/3,1,1/2: there are times for 3 stages and for 2: write one time for all, or "
        "equally many in each list\n");
  CHECK(
      run_program({"schedule", "gpipe", "--ranks", "2", "--microbatches", "1", "--costs", "1,x,1"})
          .err ==
      "--costs: \"x\" is not a valid input gradient time: write a number from 0 to 1e12, or one "
      "per stage "
      "separated by /\n");
}

TEST_CASE("schedule: weight versions of PipeDream, routes of DualPipe, buffers of DeepSpeed",
          "[cli][schedule]") {
  CHECK(answer({"pipedream", "--ranks", "4", "--microbatches", "8"})["weight_versions"] ==
        json({4, 3, 2, 1}));
  CHECK(answer({"dualpipe", "--ranks", "2", "--microbatches", "4"})["routes"] ==
        json({{0, 1}, {1, 0}}));
  const json stream = answer({"deepspeed-train", "--ranks", "2", "--microbatches", "1"});
  CHECK(stream["buffers"] == json({2, 2}));
  CHECK(stream["steps"][0][0] == json({"LoadMicroBatch(0)", "ForwardPass(0)"}));
  CHECK(stream["steps"][1].size() == 4);
}

TEST_CASE("schedule --placement: uneven ranks", "[cli][schedule]") {
  const json uneven = answer({"1f1b", "--placement", "0:[0,1,4],1:[2,3]", "--microbatches", "3"});
  CHECK(uneven["routes"] == json({{0, 0, 1, 1, 0}}));
  CHECK(uneven["ranks"][0].size() == 3 * 3 * 2);
  const Result gap =
      run_program({"schedule", "1f1b", "--placement", "0:[0],1:[2]", "--microbatches", "3"});
  CHECK(gap.exit_code == 2);
  CHECK(gap.err == "placement \"0:[0],1:[2]\": stage 1 is on no rank, but stage 2 is on rank 1\n");
}

TEST_CASE("schedule --check names a known schedule, and the layouts under which it deadlocks",
          "[cli][schedule]") {
  const TempFolder folder;
  const auto file = written(folder, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const json checked = answer({"--check", file.string(), "--costs", "1,1,1"});
  CHECK(checked["name"] == "1f1b, 2 ranks, 2 microbatches");
  CHECK(checked["iteration_time"] == 9);
  CHECK(checked["deadlocks"]["edge"]["rendezvous"].is_null());
  CHECK(checked["deadlocks"]["rank"]["rendezvous"].get<std::string>().starts_with("deadlock: "));
  const Result asked = run_program({"schedule", "--check", file.string(), "--communicators", "rank",
                                    "--transfers", "rendezvous"});
  CHECK(asked.exit_code == 1);
  CHECK(asked.err.find("deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1") != std::string::npos);
}

TEST_CASE("schedule --check and --torch reject options that they would ignore", "[cli][schedule]") {
  const TempFolder folder;
  const std::string file = written(folder, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").string();
  int refused = 0;
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& why) {
    const Result result = run_program(words);
    CAPTURE(words, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(why) != std::string::npos);
    ++refused;
  };
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--split"},
                                             {"--merge"},
                                             {"--recompute"},
                                             {"--ranks", "3"},
                                             {"--microbatches", "3"},
                                             {"--chunks", "2"},
                                             {"--group-size", "2"},
                                             {"--placement", "0:[0],1:[1]"},
                                             {"--memory-units", "9"}}) {
    std::vector<std::string> words{"schedule", "--check", file};
    words.insert(words.end(), more.begin(), more.end());
    refuses(words, more.front());
  }
  refuses({"schedule", "1f1b", "--check", file}, "name");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--replicas", "2"},
                                             {"--tied", "0,1"},
                                             {"--communicators", "pair"},
                                             {"--transfers", "rendezvous"},
                                             {"--early-receives"},
                                             {"--lower"}}) {
    std::vector<std::string> words{"schedule",       "1f1b", "--ranks", "2",
                                   "--microbatches", "2",    "--torch"};
    words.insert(words.end(), more.begin(), more.end());
    refuses(words, more.front());
  }
  // A file with its own transfers is not lowered.
  const std::string whole =
      written(folder, "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").string();
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--replicas", "2"}, {"--tied", "0,1"}, {"--early-receives"}}) {
    std::vector<std::string> words{"schedule", "--check", whole};
    words.insert(words.end(), more.begin(), more.end());
    refuses(words, "already has transfers");
  }
  CHECK(refused == 19);
}

TEST_CASE("schedule --check warns of transfers that cross or come too early", "[cli][schedule]") {
  const TempFolder folder;
  const auto file = written(folder,
                            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                            "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n");
  CHECK(answer({"--check", file.string()})["warnings"] ==
        json({"rank 0 sends 0SEND_F0 where rank 1 receives 1RECV_F1: an in-order queue would swap "
              "the tensors",
              "rank 1: 1RECV_F1 holds up 1RECV_F0: 1F1 needs it only later"}));
}

TEST_CASE("schedule --check distinguishes bad text (2) from an order that cannot run (1)",
          "[cli][schedule]") {
  const TempFolder folder;
  CHECK(run_program({"schedule", "--check", written(folder, "0F0,0X0\n").string()}).exit_code == 2);
  CHECK(run_program({"schedule", "--check", written(folder, "0F0,0SEND\n").string()}).exit_code ==
        2);
  CHECK(run_program({"schedule", "--check", written(folder, "0B0,0F0\n").string()}).exit_code == 1);
  CHECK(run_program({"schedule", "--check",
                     written(folder, "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n").string()})
            .exit_code == 1);
  CHECK(run_program({"schedule", "--check", (folder.path() / "none.csv").string()}).exit_code == 2);
}

TEST_CASE("schedule --svg draws every action", "[cli][schedule]") {
  const TempFolder folder;
  const auto file = folder.path() / "plan.svg";
  const Result result = run_program(
      {"schedule", "zbv", "--ranks", "4", "--microbatches", "8", "--svg", file.string()});
  CHECK(result.exit_code == 0);
  const std::string svg = text_of(file);
  CHECK(svg.find("zbv, 4 ranks, 8 microbatches") != std::string::npos);
  CHECK(svg.find("weight gradient") != std::string::npos);
}

TEST_CASE("schedule rejects sizes with the rule and the nearest valid ones", "[cli][schedule]") {
  const auto error = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"schedule"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run_program(arguments);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(error({"dualpipe", "--ranks", "3", "--microbatches", "8"}) ==
        "dualpipe: 3 ranks asked for, but it needs an even number: 2 or 4\n");
  CHECK(
      error({"dualpipev", "--ranks", "4", "--microbatches", "7"}) ==
      "dualpipev: 7 microbatches are too few for 4 ranks: at least twice as many are needed, 8\n");
  CHECK(error({"interleaved-1f1b", "--ranks", "3", "--microbatches", "16", "--chunks", "2"}) ==
        "interleaved-1f1b: 16 microbatches cannot be cut into 5 equal rounds (there is one round "
        "for every 3 microbatches): the nearest numbers that can are 15 and 18\n");
  CHECK(error({"1f1b", "--ranks", "2", "--microbatches", "4", "--chunks", "2"}) ==
        "1f1b: 2 chunks per rank asked for, but it has 1; these take more: interleaved-1f1b, "
        "megatron-interleaved, group-interleaved-1f1b, looped-bfs, interleaved-zb or inference\n");
  CHECK(error({"1f1b", "--ranks", "2", "--microbatches", "4", "--memory-units", "4"}) ==
        "1f1b: takes no memory limit; these do: zb-auto or v-zb\n");
  CHECK(
      error({"megatron-interleaved", "--ranks", "4", "--microbatches", "12", "--chunks", "2",
             "--group-size", "5"}) ==
      "megatron-interleaved: 12 microbatches in groups of 5 leave a last group of 2, less than the "
      "4 ranks: the nearest group that fits is 4 or 6\n");
}

}  // namespace schedule_command_test
