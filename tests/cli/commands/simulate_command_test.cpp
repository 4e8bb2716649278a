#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace simulate_command_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using test::TempFolder;

const std::string folder_of_scenario = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card";

/// Returns the arguments for the shipped scenario with made-up costs: its answers are the same
/// everywhere.
std::vector<std::string> shared_card(const std::string& command,
                                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{command, folder_of_scenario + "/scenario.json", "--costs",
                                     folder_of_scenario + "/costs.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json answer_of(const std::vector<std::string>& arguments) {
  const auto result = run_program(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

TEST_CASE("simulate --json: causes add up to the bubble, holders to the peak", "[cli][simulate]") {
  const json answer = answer_of(shared_card(
      "simulate", {"--json", "--sensitivities", "--set", "cluster.between_nodes.shared=false"}));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    double idle = 0;
    for (const auto& [cause, seconds] : answer["idle_s"][rank].items())
      idle += seconds.get<double>();
    CHECK(idle == Approx(answer["bubble_s"][rank].get<double>()).epsilon(1e-12));
    std::int64_t held = 0;
    for (const auto& holder : answer["peaks"][rank]["held_by"])
      held += holder["bytes"].get<std::int64_t>();
    CHECK(held == answer["peak_bytes"][rank].get<std::int64_t>());
    CHECK(answer["peaks"][rank]["bytes"] == held);
    CHECK(answer["peaks"][rank]["context_bytes"] == 0);  // a CPU has none
  }
  CHECK(answer["sensitivities"]["layers"].size() == 8);
  // The slow stage sets the pace of half of the microbatches; each hop is passed in both
  // directions.
  CHECK(answer["sensitivities"]["stages"][1]["all"] == 8);
}

TEST_CASE("simulate prints a note if there are more ranks than devices", "[cli][simulate]") {
  const auto said = [](const std::string& devices) {
    const auto result = run_program(shared_card(
        "simulate", {"--set", "cluster.nodes=1", "--set", "cluster.devices_per_node=" + devices}));
    CHECK(result.exit_code == 0);
    return result.err;
  };
  CHECK(said("15").find("16 ranks, but the cluster has 15 devices") != std::string::npos);
  CHECK(said("1").find("16 ranks, but the cluster has 1 device:") != std::string::npos);
  CHECK(said("16").find("devices") == std::string::npos);
}

TEST_CASE("simulate --engine simgrid gives the same times, also with a shared card",
          "[cli][simulate]") {
  const auto with = [](const std::vector<std::string>& more) {
    auto arguments = shared_card("simulate", {"--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  const std::vector<std::string> simgrid{"--engine", "simgrid"};
  const auto contended = with(simgrid);
  if (contended.err.find("built without SimGrid") != std::string::npos)
    test::skip("built without SimGrid");
  const double native = json::parse(with({}).out)["iteration_s"];
  CHECK(json::parse(contended.out)["iteration_s"].get<double>() == Approx(native).epsilon(1e-9));
  const std::vector<std::string> apart{"--set", "cluster.between_nodes.shared=false"};
  auto both = apart;
  both.insert(both.end(), simgrid.begin(), simgrid.end());
  const json alone = json::parse(with(apart).out);
  CHECK(json::parse(with(both).out)["iteration_s"].get<double>() ==
        Approx(alone["iteration_s"].get<double>()).epsilon(1e-9));
  CHECK(alone["iteration_s"].get<double>() < native / 1.2);
  CHECK(contended.err.empty());

  // SimGrid cannot express these costs.
  const TempFolder folder;
  const auto file = (folder.path() / "busy.json").string();
  const std::string scenario = folder_of_scenario + "/scenario.json";
  json busy = json::parse(test::text_of(folder_of_scenario + "/costs.json"));
  busy["busy_cores"] = 2;
  for (json& layer : busy["layers"])
    for (const char* time :
         {"forward_s", "input_gradient_s", "weight_gradient_s", "optimizer_step_s"})
      layer[std::string("contended_") + time] = layer[time];
  plan::write_file(file, busy.dump());
  const auto told = run_program({"simulate", scenario, "--costs", file, "--engine", "simgrid"});
  CHECK(told.exit_code == 2);
  CHECK(told.err.find("SimGrid cannot express ranks that slow each other down") !=
        std::string::npos);
  CHECK(run_program({"simulate", scenario, "--costs", file}).err.empty());
}

/// Writes a record of one rank; `lines` are those of steps 0 and 1.
std::string record_in(const TempFolder& folder, const std::string& lines) {
  const auto file = folder.path() / "steps.csv";
  plan::write_file(file, "step,replica,rank,action,seconds\n" + lines);
  return file.string();
}

TEST_CASE("simulate --every-rank simulates each device of the job, with its own links and jitter",
          "[cli][simulate]") {
  const auto answer_with = [](std::vector<std::string> more) {
    more.insert(more.end(),
                {"--every-rank", "--json", "--set", "cluster.between_nodes.shared=false"});
    return answer_of(shared_card("simulate", more));
  };
  const json alike = answer_with({});  // four pipelines, a rank of each on each of four nodes
  CHECK(alike["every_rank"]["devices"] == 16);
  CHECK(alike["every_rank"]["iteration_s"] == alike["iteration_s"]);
  CHECK(alike["every_rank"]["first_computed_s"] == alike["every_rank"]["last_computed_s"]);
  // Three pipelines are spread over nodes: some hops stay within one.
  const json across = answer_with({"--set", "pipeline.replicas=3"});
  CHECK(across["every_rank"]["iteration_s"] < across["iteration_s"]);
  CHECK(across["every_rank"]["first_computed_s"] < across["every_rank"]["last_computed_s"]);
  const json drawn = answer_with({"--set", "training.jitter=0.1"});
  CHECK(drawn["every_rank"]["iteration_s"] >= drawn["every_rank"]["last_computed_s"]);
  CHECK(drawn["every_rank"]["first_computed_s"] < drawn["every_rank"]["last_computed_s"]);
  const auto refused = run_program(shared_card("simulate", {"--every-rank"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("individually: transfers share links of the cluster") !=
        std::string::npos);
}

TEST_CASE("simulate shows the transfers of each level, and the speed of ranks on each kind of node",
          "[cli][simulate]") {
  // Four nodes, each with a rank of each of four pipelines: half of the hops cross groups of two
  // nodes.
  const std::vector<std::string> more{
      "--set",
      R"(cluster.fabric={"levels":[{"name":"spine","group_nodes":2,"latency_s":0.001,)"
      R"("bandwidth_per_s":1e9,"shared":true}]})",
      "--set",
      R"(cluster.mixture={"kinds":[{"nodes":3,"device":{"name":"new"}},)"
      R"({"nodes":1,"device":{"name":"old"},"speed":0.5}]})"};
  auto as_json = more;
  as_json.push_back("--json");
  const json answer = answer_of(shared_card("simulate", as_json));
  CHECK(answer["kind_speeds"] == json({1, 1, 1, 0.5}));
  // 16 microbatches in both directions over three hops, the middle one from node 1 to node 2.
  CHECK(answer["transfers_by_level"] == json({{"within a node", 0},
                                              {"between nodes", 4 * 2 * 2 * 16},
                                              {"of the level spine", 4 * 2 * 16}}));
  CHECK(answer["iteration_s"] > answer_of(shared_card("simulate", {"--json"}))["iteration_s"]);
  const auto table = run_program(shared_card("simulate", more));
  CHECK(table.out.find("transfers: 0 within a node, 256 between nodes, 128 of the level spine\n"
                       "speed of ranks by their nodes: 1 1 1 0.5\n") != std::string::npos);
}

TEST_CASE("simulate --draws: percentiles from a record depend on the seed", "[cli][simulate]") {
  const TempFolder folder;
  const auto draws_of = [&](const std::string& record, const std::string& seed) {
    return answer_of(
        shared_card("simulate", {"--json", "--set", "cluster.between_nodes.shared=false", "--draws",
                                 "500", "--jitter", record, "--seed", seed}));
  };
  const std::string alike = record_in(folder, "0,0,0,0F0,3\n1,0,0,0F0,3\n");
  const json steady = draws_of(alike, "1");
  for (const char* figure : {"mean_s", "p50_s", "p95_s", "p99_s"})
    CHECK(steady["draws"][figure].get<double>() ==
          Approx(steady["iteration_s"].get<double>()).epsilon(1e-12));
  CHECK(steady["draws"]["count"] == 500);
  CHECK(steady["draws"]["seed"] == 1);

  const std::string unlike =
      record_in(folder, "0,0,0,0F0,1\n1,0,0,0F0,3\n0,0,0,0B0,1\n1,0,0,0B0,3\n");
  const json jittery = draws_of(unlike, "1");
  CHECK(jittery["draws"]["p95_s"] > jittery["draws"]["p50_s"]);
  CHECK(draws_of(unlike, "1") == jittery);
  CHECK(draws_of(unlike, "2")["draws"]["mean_s"] != jittery["draws"]["mean_s"]);
  // The folder of a run is equivalent to its table.
  CHECK(draws_of(folder.path().string(), "1") == jittery);
  const auto table =
      run_program(shared_card("simulate", {"--draws", "10", "--jitter", unlike, "--seed", "1"}));
  CHECK(table.out.find("10 samples of 2 recorded steps (seed 1): mean ") != std::string::npos);
  CHECK(table.out.find("90 % confidence intervals for 2 other steps: mean ") != std::string::npos);
  CHECK(jittery["draws"]["other_steps"]["steps"] == 2);
  CHECK(jittery["draws"]["other_steps"]["p95_s"][1].is_null());  // two steps give no upper bound
}

TEST_CASE("simulate --draws requires a record", "[cli][simulate]") {
  const TempFolder folder;
  const std::string record = record_in(folder, "0,0,0,0F0,1\n1,0,0,0F0,3\n");
  const auto refusal = [](const std::vector<std::string>& more) {
    const auto result = run_program(shared_card("simulate", more));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(refusal({"--draws", "10"}).find("needs recorded steps to sample from: --jitter FILE") !=
        std::string::npos);
  CHECK(refusal({"--jitter", record}).find("--jitter is only valid with --draws") !=
        std::string::npos);
  CHECK(refusal({"--seed", "1"}).find("--seed is only valid with --draws") != std::string::npos);
  CHECK(refusal({"--draws", "0", "--jitter", record}).find("--draws") != std::string::npos);
  CHECK(refusal({"--draws", "10", "--jitter", record, "--engine", "simgrid"})
            .find("--draws is only valid with --engine native") != std::string::npos);
  CHECK(refusal({"--draws", "10", "--jitter", record, "--set", "training.jitter=0.1"})
            .find("cannot be combined with training.jitter") != std::string::npos);
  CHECK(refusal({"--draws", "10", "--jitter", folder_of_scenario})
            .find("has no steps.csv: `pipewright run` writes one") != std::string::npos);
}

TEST_CASE("simulate --explain prints a sentence, or an error message", "[cli][simulate]") {
  const auto explain = [](const char* at) {
    return run_program(
        shared_card("simulate", {"--explain", at, "--set", "cluster.between_nodes.shared=false"}));
  };
  CHECK(explain("0@20").out ==
        "rank 0 is idle from 6.040 ms to 20.85 ms: 0B0 waits for data from rank 1, which runs 1B0 "
        "from 16.41 ms to 20.41 ms\n");
  CHECK(explain("0@0.02s").out == explain("0@20ms").out);
  CHECK(explain("0@20000us").out == explain("0@20").out);
  for (const char* wrong : {"0", "@3", "x@3", "0@", "0@3min", "0@-1", "4@1", "0@1e9", "1e9@1"}) {
    const auto result = explain(wrong);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_FALSE(result.err.empty());
  }
}

TEST_CASE("simulate --trace and --svg contain the causes and the critical path",
          "[cli][simulate]") {
  const TempFolder folder;
  const auto trace = folder.path() / "t.json";
  const auto svg = folder.path() / "t.svg";
  REQUIRE(run_program(shared_card("simulate", {"--trace", trace.string(), "--svg", svg.string()}))
              .exit_code == 0);
  const auto timeline = plan::timeline_from_trace(plan::JsonDocument::read(trace));
  CHECK(timeline.ranks == 4);
  CHECK_FALSE(timeline.critical.empty());
  double idle = 0, bubble = 0;
  for (const plan::IdleSpan& span : timeline.idle)
    idle += (span.end - span.start).value;
  for (const plan::Seconds rank : plan::bubble_per_rank(timeline))
    bubble += rank.value;
  CHECK(idle == Approx(bubble));
  CHECK(test::text_of(svg).find("critical path") != std::string::npos);
}

TEST_CASE("simulate --actions: start, end and slack of every instruction", "[cli][simulate]") {
  const TempFolder folder;
  const auto file = folder.path() / "a.csv";
  const json answer = answer_of(shared_card("simulate", {"--actions", file.string(), "--json"}));
  std::istringstream lines(test::text_of(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "rank,action,start_s,end_s,slack_s,critical");
  double last_critical_end = 0;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    std::vector<std::string> cells(1);
    for (const char c : line)
      if (c == ',')
        cells.emplace_back();
      else
        cells.back() += c;
    REQUIRE(cells.size() == 6);
    const double slack = std::stod(cells[4]);
    CHECK(slack >= 0);
    if (cells[5] == "1") {
      CHECK(slack < 1e-12);
      last_critical_end = std::max(last_critical_end, std::stod(cells[3]));
    }
  }
  // F, B; sends, receives; loads; reduce, step, loss
  CHECK(count == 16 * (4 * 2 + 6 * 2 + 2) + 4 * 3);
  CHECK(last_critical_end == answer["iteration_s"].get<double>());
}

TEST_CASE("simulate: a schedule's file has the same timeline as its name", "[cli][simulate]") {
  const TempFolder folder;
  const auto printed = run_program({"schedule", "1f1b", "--ranks", "4", "--microbatches", "16"});
  const auto file = folder.write("x.csv", printed.out).string();
  const auto traced = [&](const std::vector<std::string>& how) {
    const auto trace = folder.path() / "t.json";
    std::vector<std::string> all{"--trace", trace.string(), "--json"};
    all.insert(all.end(), how.begin(), how.end());
    json answer = answer_of(shared_card("simulate", all));
    return std::pair(std::move(answer), test::text_of(trace));
  };
  const auto named = traced({});
  CHECK(traced({"--set", "pipeline.schedule=" + file}) == named);
  CHECK(traced({"--schedule", file}) == named);
  const auto other = run_program(
      shared_card("simulate", {"--schedule", file, "--set", "pipeline.microbatches=8"}));
  CHECK(other.exit_code == 2);
  CHECK(other.err.find("/pipeline/microbatches: x.csv is for 16 microbatches, but 8 are asked for: "
                       "pipeline.microbatches=16 fits") != std::string::npos);
}

TEST_CASE("simulate --schedule uses the order of a file; an unsound order is bad input",
          "[cli][simulate]") {
  const TempFolder folder;
  const auto named = run_program({"schedule", "gpipe", "--ranks", "4", "--microbatches", "16"});
  const auto file = folder.write("gpipe.csv", named.out);
  const json read = answer_of(shared_card("simulate", {"--schedule", file.string(), "--json"}));
  const json made =
      answer_of(shared_card("simulate", {"--set", "pipeline.schedule=gpipe", "--json"}));
  CHECK(read["iteration_s"].get<double>() <= made["iteration_s"].get<double>());

  const auto cyclic = folder.write("cyclic.csv", "0B0,0F0\n1F0,1B0\n");
  const auto refused = run_program(shared_card("simulate", {"--schedule", cyclic.string()}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("0B0") != std::string::npos);
  // A Program is used as it is: this one has all transfers of a rank in one queue.
  plan::LoweringOptions options;
  options.communicators = plan::CommunicatorLayout::Rank;
  options.replicas = 4;
  options.share_loss = true;
  plan::Program program = plan::lower(plan::make_schedule("1f1b", 4, 16), options);
  const auto whole = folder.write("program.json", to_json(program).dump());
  const json queued =
      answer_of(shared_card("simulate", {"--set", "pipeline.communicators=rank", "--json"}));
  CHECK(answer_of(shared_card("simulate", {"--schedule", whole.string(),
                                           "--json"}))["iteration_s"] == queued["iteration_s"]);
  program.transfers = plan::TransferMode::Rendezvous;
  const auto stuck = folder.write("stuck.json", to_json(program).dump());
  const auto deadlock = run_program(shared_card("simulate", {"--schedule", stuck.string()}));
  CHECK(deadlock.exit_code == 1);
  CHECK(deadlock.err.find("deadlock: rank") != std::string::npos);
  json odd = json::parse(to_json(program).dump());
  odd["communicators"] = 3;
  const auto number = folder.write("number.json", odd.dump());
  CHECK(run_program(shared_card("simulate", {"--schedule", number.string()})).exit_code == 2);
  odd["communicators"] = "ring";
  const auto ring = folder.write("ring.json", odd.dump());
  CHECK(run_program(shared_card("simulate", {"--schedule", ring.string()})).exit_code == 2);
  program.ranks[1].pop_back();
  program.ranks[2].erase(program.ranks[2].begin());  // a receive
  const auto broken = folder.write("broken.json", to_json(program).dump());
  const auto unsound = run_program(shared_card("simulate", {"--schedule", broken.string()}));
  CHECK(unsound.exit_code == 2);
  CHECK(unsound.err.find("broken.json:1:") != std::string::npos);
  CHECK(unsound.err.find("/ranks: rank ") != std::string::npos);

  const auto other = folder.write("other.csv", "0F0,0B0\n1F0,1B0\n");
  CHECK(run_program(shared_card("simulate", {"--schedule", other.string()})).exit_code == 2);
}

TEST_CASE("simulate --schedule: recomputation that differs from the scenario is bad input",
          "[cli][simulate]") {
  const TempFolder folder;
  const auto program_for = [](plan::RecomputeMode mode) {
    plan::LoweringOptions options;
    options.replicas = 4;
    options.share_loss = true;
    options.recompute = mode;
    return plan::lower(plan::make_schedule("1f1b", 4, 16), options);
  };
  const auto simulated = [&](const std::filesystem::path& file, const std::string& mode) {
    return run_program(shared_card(
        "simulate", {"--schedule", file.string(), "--set", "training.recompute=" + mode}));
  };
  using Mode = plan::RecomputeMode;
  const std::vector<std::string> modes{"none", "full", "selective"};
  for (const Mode mode : {Mode::None, Mode::Full, Mode::Selective}) {
    const auto file = folder.write("program.json", to_json(program_for(mode)).dump());
    for (const std::string& wanted : modes) {
      INFO(plan::to_string(mode) << " under " << wanted);
      const auto result = simulated(file, wanted);
      CHECK(result.exit_code == (wanted == plan::to_string(mode) ? 0 : 2));
    }
  }
  const auto says = [](const test::Result& refused, const std::string& text) {
    INFO(refused.err);
    CHECK(refused.err.find(text) != std::string::npos);
  };
  const auto whole = folder.write("program.json", to_json(program_for(Mode::None)).dump());
  const std::string missing =
      "recomputes nothing, but training.recompute is full: it needs an R before each backward "
      "(possible without: training.recompute none, selective)";
  says(simulated(whole, "full"), "program.json:1:");
  says(simulated(whole, "full"), ": /ranks: " + missing);
  says(simulated(whole, "selective"),
       ": /selective_recompute: is false, but training.recompute is selective, which needs true");
  const auto again = folder.write("again.json", to_json(program_for(Mode::Full)).dump());
  says(
      simulated(again, "none"),
      ": /recompute_layers: is 1 and there is an R, but training.recompute is none, which needs 0");

  // With communication a CSV is a Program too; without it, missing actions are added.
  const auto sends = folder.write("sends.csv", to_csv(program_for(Mode::None)));
  says(simulated(sends, "full"), "sends.csv: " + missing);
  CHECK(simulated(sends, "none").exit_code == 0);
  CHECK(simulated(folder.write("more.csv", to_csv(program_for(Mode::Full))), "full").exit_code ==
        0);
  const auto named = run_program({"schedule", "1f1b", "--ranks", "4", "--microbatches", "16"});
  CHECK(simulated(folder.write("named.csv", named.out), "full").exit_code == 0);
}

TEST_CASE("simulate rejects bad input with an error message before simulating", "[cli][simulate]") {
  const TempFolder folder;
  const auto refusal = [&](const std::vector<std::string>& more, int exit_code) {
    const auto result = run_program(shared_card("simulate", more));
    INFO(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(refusal({"--set", "cluster.within_node.bandwidth_per_s=0"}, 2).find("bandwidth_per_s") !=
        std::string::npos);
  CHECK(refusal({"--set", "cluster.rank_speeds=[1,1]"}, 2).find("rank_speeds") !=
        std::string::npos);
  CHECK(refusal({"--set", "cluster.device.memory_bytes=1000"}, 2).find("parameters") !=
        std::string::npos);
  CHECK(refusal({"--set", "cluster.device.memory_bytes=60000000"}, 1).find("rank 1 needs") !=
        std::string::npos);
  CHECK(refusal({"--set", "cluster.rank_memory_bytes=[0,0,40000000,30000000]"}, 1)
            .find("rank 2 needs") != std::string::npos);
  CHECK(
      refusal({"--set", "pipeline.communicators=rank", "--set", "pipeline.transfers=rendezvous"}, 1)
          .find("deadlock: rank") != std::string::npos);
  CHECK(refusal({"--platform", "p.xml"}, 2).find("--engine simgrid") != std::string::npos);

  json costs = json::parse(test::text_of(folder_of_scenario + "/costs.json"));
  for (auto& layer : costs["layers"])
    layer["forward_s"] = 0;
  costs["loss"]["forward_s"] = 0;
  const auto zero = folder.write("zero.json", costs.dump());
  const auto result =
      run_program({"simulate", folder_of_scenario + "/scenario.json", "--costs", zero.string()});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("stage 0") != std::string::npos);
}

TEST_CASE("sweep: all combinations as table, CSV, JSON and chart", "[cli][sweep]") {
  const TempFolder folder;
  const auto csv = folder.path() / "s.csv";
  const auto svg = folder.path() / "s.svg";
  const std::vector<std::string> swept{"--set", "pipeline.schedule=gpipe,1f1b", "--set",
                                       "pipeline.microbatches=4..16x2"};
  auto all = swept;
  all.insert(all.end(), {"--json", "--csv", csv.string(), "--svg", svg.string()});
  const json rows = answer_of(shared_card("sweep", all))["rows"];
  REQUIRE(rows.size() == 6);
  CHECK(rows[4]["set"]["pipeline.schedule"] == "1f1b");
  CHECK(rows[4]["set"]["pipeline.microbatches"] == "8");
  for (const json& row : rows) {
    const json alone = answer_of(shared_card(
        "simulate",
        {"--json", "--set",
         "pipeline.schedule=" + row["set"]["pipeline.schedule"].get<std::string>(), "--set",
         "pipeline.microbatches=" + row["set"]["pipeline.microbatches"].get<std::string>()}));
    CHECK(row["iteration_s"] == alone["iteration_s"]);
    const auto peaks = alone["peak_bytes"].get<std::vector<std::int64_t>>();
    CHECK(row["peak_bytes"] == *std::max_element(peaks.begin(), peaks.end()));
  }
  const std::string text = test::text_of(csv);
  CHECK(std::count(text.begin(), text.end(), '\n') == 7);
  CHECK(test::text_of(svg).find("pipeline.microbatches") != std::string::npos);

  const auto table = run_program(shared_card("sweep", swept));
  CHECK(table.out.find("best") != std::string::npos);
}

TEST_CASE("sweep: link.bandwidth sets both links, and more of it is never slower", "[cli][sweep]") {
  const json rows =
      answer_of(shared_card("sweep", {"--set", "link.bandwidth=1e8..1e11x10", "--json"}))["rows"];
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 1; i < rows.size(); ++i)
    CHECK(rows[i]["iteration_s"] < rows[i - 1]["iteration_s"]);
}

TEST_CASE(
    "sweep: an impossible combination is a row with its reason; only invalid combinations are an "
    "error",
    "[cli][sweep]") {
  const json rows = answer_of(
      shared_card("sweep", {"--set", "cluster.device.memory_bytes=60000000,0", "--json"}))["rows"];
  CHECK(rows[0]["refusal"].get<std::string>().find("rank 1 needs") != std::string::npos);
  CHECK(rows[1].contains("iteration_s"));
  for (const char* wrong : {"pipeline.microbatches=4..2", "pipeline.microbatches=4..8x1",
                            "pipeline.rank=2,3", "pipeline.microbatches", "pipeline.microbatches=8",
                            "pipeline.microbatches=1..1e9", "pipeline.microbatches=0..64x2"}) {
    const auto result = run_program(shared_card("sweep", {"--set", wrong}));
    INFO(wrong << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
  }
  const auto none =
      run_program(shared_card("sweep", {"--set", "cluster.device.memory_bytes=60000000,50000000"}));
  CHECK(none.exit_code == 1);
}

}  // namespace simulate_command_test
