#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "support/catch.hpp"

namespace plan_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string clusters = PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/";
const std::string a100 = clusters + "a100-80gb.json", h100 = clusters + "h100-sxm.json";

TEST_CASE("plan --json: the best plans with their scenarios, and counts of pruned candidates",
          "[cli][planner]") {
  const auto result =
      run_program({"plan", "--model", "gpt3-175b", "--cluster", a100, "--batch", "1536", "--gpus",
                   "1024", "--top", "4", "--schedule", "1f1b,interleaved-1f1b", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("plans").size() == 4);
  CHECK(json.at("candidates").get<int>() ==
        json.at("pruned").get<int>() + json.at("simulated").get<int>());
  CHECK(json.contains("seconds"));
  double before = 0;
  for (const auto& plan : json.at("plans")) {
    CHECK(plan.at("iteration_s").get<double>() >= before);
    before = plan.at("iteration_s");
    CHECK(plan.at("least_s").get<double>() <= before);
    CHECK(plan.at("tokens_per_s").get<double>() == Approx(1536 * 2048 / before));
    CHECK(plan.at("mfu").get<double>() > 0.2);
    CHECK(plan.at("mfu").get<double>() < 1);
    CHECK(plan.at("memory_bytes").get<double>() <= 85899345920.0);
    std::vector<double> by_rank;
    for (const auto& memory : plan.at("memory_by_rank"))
      by_rank.push_back(memory.at("bytes"));
    CHECK(by_rank.size() == plan.at("pipeline").get<std::size_t>());
    CHECK(*std::max_element(by_rank.begin(), by_rank.end()) == plan.at("memory_bytes"));
    CHECK(plan.at("tensor").get<int>() * plan.at("pipeline").get<int>() *
              plan.at("data").get<int>() ==
          1024);
    CHECK(plan.at("scenario").at("pipeline").at("ranks") == plan.at("pipeline"));
  }
  CHECK(!json.at("plans")[0].at("change_to_next").get<std::string>().empty());
  CHECK(json.at("plans")[3].at("change_to_next") == "");
  CHECK(json.at("too_large_but_faster").at("fits") == false);
}

TEST_CASE("plan keeps the sequence, norms and rotary embedding of Megatron's arguments",
          "[cli][planner]") {
  const TempFolder folder;
  const auto file = folder.write(
      "args.sh",
      "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --ffn-hidden-size 512 "
      "--seq-length 128 --max-position-embeddings 128 --vocab-size 256 "
      "--make-vocab-size-divisible-by 1 --swiglu --disable-bias-linear --normalization RMSNorm "
      "--norm-epsilon 1e-6 --position-embedding-type rope --rotary-base 1000000 "
      "--rotary-percent 0.5 --untie-embeddings-and-output-weights --hidden-dropout 0 "
      "--attention-dropout 0 --bf16");
  const auto out = folder.path() / "out";
  std::vector<std::string> words{"plan",   "--model",    file.string(), "--cluster",  h100,
                                 "--gpus", "2",          "--batch",     "8",          "--tensor",
                                 "1",      "--pipeline", "2",           "--schedule", "1f1b",
                                 "--zero", "0",          "-o",          out.string()};
  const auto model_of = [&] {
    const auto result = run_program(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(plan::read_file(out / "scenario.json")).at("model");
  };
  const auto model = model_of();
  CHECK(model.at("sequence") == 128);
  CHECK(model.at("norm_epsilon") == 1e-6);
  CHECK(model.at("rotary_base") == 1'000'000);
  CHECK(model.at("rotary_fraction") == 0.5);
  words.insert(words.end(), {"--sequence", "64"});
  CHECK(model_of().at("sequence") == 64);
}

TEST_CASE("plan --at chooses the plans with the shortest P95 of the iteration time",
          "[cli][planner]") {
  const TempFolder folder;
  const auto record = folder.path() / "steps.csv";
  const auto plan_at = [&](const std::string& lines) {
    plan::write_file(record, "step,replica,rank,action,seconds\n" + lines);
    const auto result = run_program({"plan", "--model", "llama3-8b", "--cluster", h100, "--gpus",
                                     "32", "--batch", "64", "--top", "3", "--at", "p95", "--jitter",
                                     record.string(), "--draws", "200", "--json"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out).at("plans");
  };
  const auto steady = plan_at("0,0,0,0F0,1\n1,0,0,0F0,1\n");
  REQUIRE(steady.size() == 3);
  for (const auto& plan : steady)
    CHECK(plan.at("p95_s").get<double>() ==
          Approx(plan.at("iteration_s").get<double>()).epsilon(1e-9));
  double before = 0;
  for (const auto& plan : plan_at("0,0,0,0F0,1\n1,0,0,0F0,3\n2,0,0,0F0,1\n")) {
    CHECK(plan.at("p95_s") > plan.at("iteration_s"));
    CHECK(plan.at("p95_s") >= before);
    before = plan.at("p95_s");
  }
  const auto refusal = [](std::vector<std::string> more) {
    std::vector<std::string> words{"plan", "--model", "llama3-8b", "--cluster",
                                   h100,   "--batch", "64"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refusal({"--at", "p95"}).find("needs recorded steps to sample from: --jitter FILE") !=
        std::string::npos);
  CHECK(refusal({"--jitter", "x"}).find("--jitter: only valid with --at") != std::string::npos);
  CHECK(refusal({"--draws", "5"}).find("--draws: only valid with --at") != std::string::npos);
  CHECK(refusal({"--at", "p95", "--jitter", "x", "--pareto"})
            .find("--at: cannot be combined with --pareto") != std::string::npos);
}

TEST_CASE("plan --failure-hours shows the goodput and the checkpoint interval", "[cli][planner]") {
  const auto plan_with = [](std::vector<std::string> more) {
    std::vector<std::string> words{"plan",   "--model",    "llama3-8b", "--cluster", h100,
                                   "--gpus", "64",         "--batch",   "256",       "--top",
                                   "1",      "--schedule", "1f1b"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const auto found = plan_with({"--failure-hours", "6400", "--write-rate", "20", "--json"});
  REQUIRE(found.exit_code == 0);
  const auto failures = nlohmann::json::parse(found.out).at("failures");
  CHECK(failures.at("between_s").get<double>() == Approx(360'000));  // 100 h
  const double bytes = 14 * 8'030'261'248.0;
  CHECK(failures.at("checkpoint_bytes").get<double>() == bytes);
  CHECK(failures.at("checkpoint_s").get<double>() == Approx(bytes / 20e9));
  CHECK(failures.at("interval_s").get<double>() == Approx(std::sqrt(2 * bytes / 20e9 * 360'000)));
  const double kept = failures.at("goodput");
  CHECK(kept < 1);
  CHECK(kept > 0.99);
  const auto table = plan_with({"--failure-hours", "6400", "--write-rate", "20"}).out;
  CHECK(
      table.find("One of plan 1's GPUs fails every 100.0 h: a checkpoint of 112.4 GB takes 5.6 s, "
                 "and with one every 33.5 min ") != std::string::npos);
  const auto longer = plan_with(
      {"--failure-hours", "6400", "--write-rate", "20", "--restart-minutes", "60", "--json"});
  CHECK(nlohmann::json::parse(longer.out).at("failures").at("goodput").get<double>() ==
        Approx(kept * std::exp(-(3600.0 - 300) / 360'000)));
  CHECK(plan_with({"--failure-hours", "6400"}).err ==
        "--failure-hours needs --write-rate: GB/s at which checkpoints are written\n");
  CHECK(plan_with({"--write-rate", "5"}).err == "--write-rate: only valid with --failure-hours\n");
}

TEST_CASE("plan --zero rejects a stage that does not exist", "[cli][planner]") {
  const std::string costs = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/costs.json";
  const std::string scenario = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/scenario.json";
  for (const char* stage : {"4", "7"}) {
    const auto of_model = run_program({"plan", "--model", "llama3-8b", "--cluster", h100, "--batch",
                                       "64", "--gpus", "8", "--zero", stage});
    CHECK(of_model.exit_code == 2);
    CHECK(of_model.err.starts_with(fmt::format("--zero {}: ", stage)));
    const auto of_scenario = run_program({"plan", scenario, "--costs", costs, "--zero", stage});
    CHECK(of_scenario.exit_code == 2);
    CHECK(of_scenario.err.starts_with(fmt::format("--zero {}: ", stage)));
  }
}

/// Checks that every figure of a plan's row is what its written scenario is simulated to, with its
/// costs and without them.
void check_simulated(const nlohmann::json& plan, const std::filesystem::path& out) {
  for (const bool with_costs : {true, false}) {
    std::vector<std::string> words{"simulate", (out / "scenario.json").string(), "--json"};
    if (with_costs)
      words.insert(words.end(), {"--costs", (out / "costs.json").string()});
    const auto simulated = run_program(words);
    CAPTURE(with_costs, simulated.err);
    REQUIRE(simulated.exit_code == 0);
    const auto json = nlohmann::json::parse(simulated.out);
    for (const char* figure : {"iteration_s", "tokens_per_s", "mfu", "bubble"}) {
      CAPTURE(figure);
      CHECK(json.at(figure).get<double>() == Approx(plan.at(figure).get<double>()).epsilon(1e-12));
    }
    auto peaks = json.at("peaks");
    for (auto& peak : peaks) {
      peak.erase("time_s");
      peak.erase("held_by");
    }
    CHECK(peaks == plan.at("memory_by_rank"));
  }
}

TEST_CASE("A plan's scenario is simulated to the plan's figures", "[cli][planner]") {
  const TempFolder folder;
  int planned = 0;
  for (const char* model : {"gpt3-175b", "mixtral-8x7b", "llama3-70b"})
    for (const char* pipeline : {"1", "4", "8"}) {
      CAPTURE(model, pipeline);
      const auto out = folder.path() / fmt::format("{}-{}", model, pipeline);
      const auto found =
          run_program({"plan", "--model", model, "--cluster", h100, "--batch", "256", "--pipeline",
                       pipeline, "--top", "1", "--json", "-o", out.string()});
      const auto json = nlohmann::json::parse(found.out);
      if (found.exit_code == 1) {  // too large for a device
        CHECK(json.at("smallest").at("fits") == false);
        CHECK(!std::filesystem::exists(out));
        continue;
      }
      check_simulated(json.at("plans")[0], out);
      const auto checked = run_program({"schedule", "--check", (out / "schedule.csv").string()});
      CHECK(checked.exit_code == 0);
      CHECK(std::filesystem::exists(out / "megatron.txt") ==
            !json.at("plans")[0].at("megatron_arguments").get<std::string>().empty());
      ++planned;
    }
  CHECK(planned >= 4);
}

TEST_CASE("A plan's scenario of each ZeRO stage is simulated to the plan's figures",
          "[cli][planner]") {
  const TempFolder folder;
  double memory = 1e15;
  for (const char* zero : {"0", "1", "2", "3"}) {
    CAPTURE(zero);
    const auto out = folder.path() / zero;
    const auto found = run_program({"plan",
                                    "--model",
                                    "llama3-8b",
                                    "--cluster",
                                    h100,
                                    "--gpus",
                                    "32",
                                    "--batch",
                                    "64",
                                    "--pipeline",
                                    "2",
                                    "--tensor",
                                    "2",
                                    "--microbatch",
                                    "1",
                                    "--schedule",
                                    "interleaved-1f1b",
                                    "--chunks",
                                    "4",
                                    "--recompute",
                                    "none",
                                    "--zero",
                                    zero,
                                    "--top",
                                    "1",
                                    "--json",
                                    "-o",
                                    out.string()});
    CAPTURE(found.err);
    REQUIRE(found.exit_code == 0);
    const auto plan = nlohmann::json::parse(found.out).at("plans")[0];
    check_simulated(plan, out);
    CHECK(plan.at("memory_bytes").get<double>() < memory);  // each stage shards more
    memory = plan.at("memory_bytes");
    for (const auto& rank : plan.at("memory_by_rank")) {
      CHECK(rank.at("fragmentation_bytes") > 0);
      CHECK_FALSE(rank.contains("left_out"));
    }
    const auto table = run_program({"simulate", (out / "scenario.json").string()}).out;
    CHECK(table.find("the fullest: ") != std::string::npos);
  }
}

TEST_CASE(
    "A plan's scenario of any schedule, with stages of unequal numbers of layers, is simulated to "
    "the plan's figures",
    "[cli][planner]") {
  const TempFolder folder;
  for (const char* schedule :
       {"1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "1f1b-v", "zbv", "dualpipev"}) {
    CAPTURE(schedule);
    const auto out = folder.path() / schedule;
    // 80 layers on 6 ranks: no schedule divides them evenly.
    const auto found = run_program(
        {"plan",    "--model", "llama3-70b", "--cluster", h100,         "--gpus",    "48",
         "--batch", "192",     "--pipeline", "6",         "--schedule", schedule,    "--zero",
         "0,1",     "--top",   "1",          "--json",    "-o",         out.string()});
    CAPTURE(found.err);
    REQUIRE(found.exit_code == 0);
    const auto plan = nlohmann::json::parse(found.out).at("plans")[0];
    CHECK(plan.at("schedule") == schedule);
    int layers = 0;
    for (const int of_stage : plan.at("stage_layers"))
      layers += of_stage;
    CHECK(layers == 80);
    check_simulated(plan, out);
    const bool is_megatrons = std::string(schedule).ends_with("1f1b");
    CHECK(std::filesystem::exists(out / "megatron.txt") == is_megatrons);
    if (is_megatrons) {
      const std::string arguments = plan.at("megatron_arguments");
      const std::string option = "--pipeline-model-parallel-layout '";
      const auto begin = arguments.find(option) + option.size();
      REQUIRE(begin > option.size());
      const auto layout =
          plan::parse_layout(arguments.substr(begin, arguments.find('\'', begin) - begin));
      REQUIRE(layout.stages.size() == plan.at("stage_layers").size());
      for (std::size_t stage = 0; stage < layout.stages.size(); ++stage)
        CHECK(std::count(layout.stages[stage].begin(), layout.stages[stage].end(), 't') ==
              plan.at("stage_layers")[stage].get<int>());
    }
  }
}

TEST_CASE("plan --explain shows the compute and memory of each rank", "[cli][planner]") {
  const auto explained = [](const char* number) {
    return run_program({"plan", "--model", "llama3-70b", "--cluster", h100, "--gpus", "64",
                        "--batch", "128", "--pipeline", "4", "--tensor", "4", "--top", "2",
                        "--explain", number});
  };
  const auto second = explained("2");
  CHECK(second.exit_code == 0);
  CHECK(second.out.find("plan 2: ") == 0);
  CHECK(second.out.find("\n   3        ") != std::string::npos);
  CHECK(second.out.find("Plan 1 takes ") != std::string::npos);
  const auto third = explained("3");
  CHECK(third.exit_code == 2);
  CHECK(third.err.find("--explain 3: 2 plans were found") != std::string::npos);
}

TEST_CASE("plan --pareto --svg draws each plan of the front", "[cli][planner]") {
  const TempFolder folder;
  const auto file = folder.path() / "front.svg";
  const std::vector<std::string> words{"plan", "--model", "llama3-8b",  "--cluster",
                                       h100,   "--gpus",  "16",         "--batch",
                                       "64",   "--svg",   file.string()};
  const auto alone = run_program(words);
  CHECK(alone.exit_code == 2);
  CHECK(alone.err.find("--svg: draws the Pareto front: it needs --pareto") != std::string::npos);
  auto front = words;
  front.insert(front.end(), {"--pareto", "--json"});
  const auto result = run_program(front);
  REQUIRE(result.exit_code == 0);
  const auto plans = nlohmann::json::parse(result.out).at("plans");
  REQUIRE(plans.size() > 1);
  const std::string svg = test::text_of(file);
  CHECK(svg.find(fmt::format("llama3-8b: {} plans", plans.size())) != std::string::npos);
  // Each mark is a closed shape of one path.
  const auto begin = svg.find("class=\"points\"");
  const auto marks =
      std::count(svg.begin() + static_cast<std::ptrdiff_t>(begin),
                 svg.begin() + static_cast<std::ptrdiff_t>(svg.find("/>", begin)), 'z');
  CHECK(static_cast<std::size_t>(marks) == plans.size());
}

TEST_CASE("plan reports errors and valid alternatives", "[cli][planner]") {
  const auto error_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), "plan");
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(error_of({"--model", "lama3-70b", "--cluster", h100, "--batch", "64"})
            .find("did you mean \"llama3-70b\"") != std::string::npos);
  CHECK(error_of({"--model", "llama3-8b", "--cluster", h100, "--batch", "64", "--gpus", "20"})
            .find("--gpus: 20 are not whole nodes of 8: 16 or 24 would be") != std::string::npos);
  CHECK(error_of({"--model", "llama3-8b", "--cluster", h100, "--batch", "7", "--gpus", "8",
                  "--tensor", "1", "--pipeline", "1"})
            .find("nothing divides a batch of 7 among 8 GPUs") != std::string::npos);
  const TempFolder folder;
  auto text = plan::JsonDocument::read(h100).root();
  text["device"].erase("flops_per_s");
  const auto file = folder.write("cluster.json", text.dump());
  CHECK(error_of({"--model", "llama3-8b", "--cluster", file.string(), "--batch", "64"})
            .find("device.flops_per_s is not known") != std::string::npos);
}

TEST_CASE("plan rejects options that it would ignore, by name", "[cli][planner]") {
  const std::vector<std::vector<std::string>> of_models{{"--batch", "64"},
                                                        {"--sequence", "512"},
                                                        {"--precision", "fp8"},
                                                        {"--overlap", "none"},
                                                        {"--failure-hours", "9"},
                                                        {"--regret", "3"},
                                                        {"--explain", "1"},
                                                        {"--svg", "front.svg"},
                                                        {"--pareto"},
                                                        {"--exhaustive"},
                                                        {"--as-is"},
                                                        {"--model", "llama3-8b"}};
  const std::vector<std::vector<std::string>> of_scenarios{
      {"--replan"},    {"--set", "training.steps=1"}, {"--costs", "costs.json"},
      {"--lost", "1"}, {"--slow", "1=0.5"},           {"--checkpoints", "folder"},
      {"--step", "3"}};
  const auto refused = [](std::vector<std::string> words, const std::vector<std::string>& option) {
    words.insert(words.end(), option.begin(), option.end());
    const auto result = run_program(words);
    INFO(option.front() << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(option.front()) != std::string::npos);
  };
  for (const auto& option : of_models)
    refused({"plan", PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt-text/scenario.json"}, option);
  for (const auto& option : of_scenarios)
    refused({"plan", "--model", "llama3-8b", "--cluster", h100, "--batch", "64"}, option);
}

/// Every axis of `plan --model` is searched for a scenario as well.
TEST_CASE("plan SCENARIO searches tensor and expert parallelism, and simulate confirms its time",
          "[cli][planner]") {
  const std::string scenarios = PIPEWRIGHT_SOURCE_DIR "/scenarios/";
  const TempFolder folder;
  const auto check = [&](std::vector<std::string> words, const char* axis, int size,
                         bool is_estimated) {
    const auto out = folder.path() / axis;
    words.insert(words.begin(), "plan");
    words.insert(words.end(), {"--schedule", "1f1b,zbv", "--top", "3", "--json", "-o", out.string(),
                               std::string("--") + axis, std::to_string(size)});
    const auto planned = run_program(words);
    INFO(axis << ": " << planned.err);
    REQUIRE(planned.exit_code == 0);
    const auto plans = nlohmann::json::parse(planned.out).at("plans");
    for (const auto& plan : plans) {
      CHECK(plan.at(axis) == size);
      CHECK(plan.at("gpus") == plan.at("tensor").get<int>() * plan.at("pipeline").get<int>() *
                                   plan.at("data").get<int>() * plan.at("context").get<int>());
      CHECK(plan.at("scenario").at("pipeline").at(axis) == size);
    }
    for (const bool with_costs : {true, false}) {
      if (!with_costs && !is_estimated)
        continue;
      std::vector<std::string> simulate{"simulate", (out / "scenario.json").string(), "--json"};
      if (with_costs)
        simulate.insert(simulate.end(), {"--costs", (out / "costs.json").string()});
      const auto simulated = run_program(simulate);
      INFO(simulated.err);
      REQUIRE(simulated.exit_code == 0);
      const auto json = nlohmann::json::parse(simulated.out);
      for (const char* figure : {"iteration_s", "tokens_per_s", "bubble"})
        CHECK(json.at(figure).get<double>() ==
              Approx(plans[0].at(figure).get<double>()).epsilon(1e-9));
      const auto& memory = plans[0].at("memory_by_rank");
      REQUIRE(memory.size() == json.at("peaks").size());
      for (std::size_t rank = 0; rank < memory.size(); ++rank)
        CHECK(memory[rank].at("bytes") == json.at("peaks")[rank].at("bytes"));
    }
  };
  const std::string card = scenarios + "shared-card/", mixture = scenarios + "qwen3-moe-tiny/";
  check({card + "scenario.json", "--costs", card + "costs.json"}, "tensor", 2, false);
  check({mixture + "scenario.json"}, "tensor", 2, true);
  check({mixture + "scenario.json"}, "expert", 2, true);
  check({mixture + "scenario.json"}, "expert", 4, true);
  check({mixture + "scenario.json", "--costs", mixture + "costs.json"}, "expert", 1, false);

  const auto refusal = [&](const std::string& scenario, std::vector<std::string> more) {
    std::vector<std::string> words{"plan", scenario + "scenario.json", "--costs",
                                   scenario + "costs.json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refusal(card, {"--expert", "2"}).find("--expert 2: the model gpt has no experts") == 0);
  CHECK(refusal(card, {"--tensor", "3"}).find("; 2 or 4 would do") != std::string::npos);
  CHECK(refusal(mixture, {"--expert", "3"}).find(" would do") != std::string::npos);
}

TEST_CASE("plan --model accepts a config.json like the model's name", "[cli][planner]") {
  const std::string models = PIPEWRIGHT_TEST_DATA_DIR "/models/";
  const auto plans_of = [](const std::string& model) {
    const auto result = run_program({"plan", "--model", model, "--cluster", h100, "--batch", "64",
                                     "--gpus", "64", "--top", "3", "--json"});
    CAPTURE(model, result.err);
    REQUIRE(result.exit_code == 0);
    std::vector<std::pair<double, double>> plans;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& plan : json.at("plans"))
      plans.emplace_back(plan.at("iteration_s"), plan.at("memory_bytes"));
    return plans;
  };
  CHECK(plans_of(models + "llama-3-8b.json") == plans_of("llama3-8b"));
  CHECK(plans_of(models + "mixtral-8x7b.json") == plans_of("mixtral-8x7b"));
  CHECK_FALSE(plans_of(models + "megatron-345m.sh").empty());  // 1024 positions, and as many tokens
  const auto longer = run_program({"plan", "--model", models + "megatron-345m.sh", "--cluster",
                                   h100, "--batch", "64", "--gpus", "64", "--sequence", "2048"});
  CHECK(longer.exit_code == 2);
  CHECK(longer.err.find("a sequence of 2048 is longer than the 1024 positions") !=
        std::string::npos);
}

TEST_CASE("plan assigns stages to kinds of nodes, and all commands agree on the time",
          "[cli][planner]") {
  const TempFolder folder;
  auto cluster = nlohmann::json::parse(plan::read_file(h100));
  const auto old = nlohmann::json::parse(plan::read_file(a100)).at("device");
  cluster["nodes"] = 4;
  cluster["mixture"]["kinds"] = {{{"nodes", 2}, {"device", cluster.at("device")}},
                                 {{"nodes", 2}, {"device", old}, {"speed", 0.5}}};
  const auto file = folder.write("cluster.json", cluster.dump()).string();
  const std::string out = (folder.path() / "plan").string();
  const auto answer_of = [](const std::vector<std::string>& words) {
    const auto result = run_program(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const auto planned =
      answer_of({"plan", "--model", "llama3-8b", "--cluster", file, "--batch", "128", "--sequence",
                 "8192", "--pipeline", "4", "--top", "2", "--zero", "1", "--json", "-o", out});
  const auto& best = planned.at("plans")[0];
  const double iteration = best.at("iteration_s");
  const std::vector<std::string> kinds = best.at("kinds_by_rank");
  REQUIRE(kinds.size() == 4);
  CHECK(std::ranges::count(kinds, "H100-SXM5-80GB") == 2);
  // Ranks of the slow kind have fewer layers.
  std::map<std::string, int> layers;
  for (std::size_t stage = 0; stage < best.at("stage_layers").size(); ++stage) {
    const auto rank = best.at("schedule") == "zbv" && stage >= 4 ? 7 - stage : stage % 4;
    layers[kinds[rank]] += best.at("stage_layers")[stage].get<int>();
  }
  CHECK(layers["H100-SXM5-80GB"] > 1.7 * layers["A100-SXM4-80GB"]);

  const std::vector<std::string> written{out + "/scenario.json", "--costs", out + "/costs.json",
                                         "--json"};
  const auto with = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), written.begin(), written.end());
    more.insert(more.begin(), command);
    return answer_of(more);
  };
  const auto same = Approx(iteration).epsilon(1e-12);
  CHECK(with("simulate", {}).at("iteration_s").get<double>() == same);
  const auto every = with("simulate", {"--every-rank"}).at("every_rank");
  CHECK(every.at("devices") == 32);
  CHECK(every.at("iteration_s").get<double>() == same);
  // A search with the scenario's own schedule and cut finds no slower plan.
  const auto again = with("plan", {"--pipeline", "4", "--schedule", best.at("schedule"), "--chunks",
                                   std::to_string(best.at("chunks").get<int>())});
  CHECK(again.at("plans")[0].at("iteration_s").get<double>() <= iteration * (1 + 1e-12));
  const auto table = run_program({"plan", "--model", "llama3-8b", "--cluster", file, "--batch",
                                  "128", "--sequence", "8192", "--pipeline", "2", "--top", "1"});
  CHECK(table.out.find(", ranks on ") != std::string::npos);
}

TEST_CASE("plan names the settings of a plan that train does not support", "[cli][planner]") {
  const auto answer = [](const std::string& zero, const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "plan",       "--model", PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt2/config.json",
        "--cluster",  h100,      "--gpus",
        "2",          "--batch", "16",
        "--sequence", "512",     "--tensor",
        "1",          "--top",   "1",
        "--pipeline", "1",       "--zero",
        zero};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words).out;
  };
  CHECK(answer("1", {}).find("\nPlan 1: `pipewright train` does not support model.dropout.\n") !=
        std::string::npos);
  // The head shares the embedding's weight.
  CHECK(answer("2", {}).find("does not support training.zero, model.dropout.") !=
        std::string::npos);
  CHECK(plan::Json::parse(answer("2", {"--json"})).at("plans")[0].at("only_predicted") ==
        plan::Json{"training.zero", "model.dropout"});
}

TEST_CASE("plan names the smallest plan if none fits", "[cli][planner]") {
  const auto result = run_program(
      {"plan", "--model", "llama3-405b", "--cluster", h100, "--batch", "8", "--gpus", "8"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("No plan fits. The smallest is tp 4, pp 1, dp 2, microbatch 1, full "
                        "recomputation, ZeRO 3") != std::string::npos);
}

}  // namespace plan_command_test
