#include <cmath>
#include <numeric>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/trace/explain/job_explanation.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/synthetic_traces.hpp"

namespace pipewright::trace::explanation_test {

using test::error_of;
using test::SyntheticTraces;
using test::TempFolder;
using test::traces_of;
using test::TraceStyle;

std::vector<std::filesystem::path> written(const TempFolder& folder,
                                           const std::vector<std::string>& texts) {
  std::vector<std::filesystem::path> files;
  for (const std::string& text : texts)
    files.push_back(folder.write("rank" + std::to_string(files.size()) + ".json", text));
  return files;
}

TraceExplanation explained(const std::vector<std::string>& texts, std::optional<int> step = {}) {
  const TempFolder folder;
  std::vector<std::string> problems;
  TraceExplanation explanation =
      explain_traces(written(folder, texts), {step}, problems).explanation;
  CHECK(problems == std::vector<std::string>{});
  return explanation;
}

TraceExplanation explained(const plan::Schedule& schedule, const SyntheticTraces& made = {}) {
  return explained(traces_of(schedule, made));
}

/// Returns the message without the folder's name.
std::string refusal(const std::vector<std::string>& texts, std::optional<int> step = {}) {
  const TempFolder folder;
  std::vector<std::string> problems;
  std::string message = error_of([&] { explain_traces(written(folder, texts), {step}, problems); });
  for (std::size_t at; (at = message.find(folder.path().string() + "/")) != std::string::npos;)
    message.erase(at, folder.path().string().size() + 1);
  return message;
}

bool near(double a, double b, double most) { return std::abs(a - b) <= most; }

constexpr double bare = 1e-4;  // seconds by which a synthetic trace differs at its ends

TEST_CASE("Every schedule that torch's runtime supports is recognized by its ranges",
          "[loop][explain]") {
  int recognized = 0;
  for (const plan::ScheduleDescriptor& entry : plan::schedules()) {
    if (entry.is_forward_only || entry.is_data_parallel || entry.step_every != nullptr)
      continue;
    const int chunks = entry.chunks == plan::Chunks::One ? 1 : 2;
    const plan::Schedule schedule = test::make(entry.name, 4, 8, chunks);
    if (plan::placement_of(schedule).is_bidirectional())
      continue;  // torch has no bidirectional schedules
    INFO(entry.name);
    const TraceExplanation own = explained(schedule);
    // If two schedules are equal, the name of the first one is reported.
    CHECK(plan::merge_backwards(test::make(own.schedule.name, 4, 8, chunks)) ==
          plan::merge_backwards(schedule));
    CHECK(
        near(own.pipeline.timeline.length.value, test::simulated(schedule, {}).length.value, bare));
    ++recognized;
  }
  CHECK(recognized >= 15);
}

TEST_CASE("GPipe and 1F1B are recognized without ranges that name stages", "[loop][explain]") {
  for (const auto& [name, style] :
       {std::pair("gpipe", TraceStyle::MicrobatchRanges), std::pair("1f1b", TraceStyle::Operators),
        std::pair("gpipe", TraceStyle::Operators)})
    for (const int ranks : {2, 3, 4})
      for (const bool step_ranges : {true, false}) {
        INFO(name << " on " << ranks << " ranks, found by " << static_cast<int>(style));
        const plan::Schedule schedule = plan::make_schedule(name, ranks, 6);
        const SyntheticTraces made{.style = style, .slow_stage = 1, .step_ranges = step_ranges};
        const TraceExplanation own = explained(schedule, made);
        CHECK(own.schedule.name == name);
        CHECK(own.slowest_stage == 1);
        CHECK(near(own.pipeline.timeline.length.value, test::simulated(schedule, made).length.value,
                   bare));
        CHECK(near(own.costs.stages[0].forward, made.forward_s, bare));
        CHECK(near(own.costs.stages[1].backward, 4 * made.forward_s, bare));
      }
}

TEST_CASE("Idle time by cause and busy time of a rank add up to the iteration", "[loop][explain]") {
  for (const auto style :
       {TraceStyle::Ranges, TraceStyle::MicrobatchRanges, TraceStyle::Operators}) {
    const plan::Schedule schedule = plan::make_schedule("1f1b", 4, 8);
    const TraceExplanation own = explained(schedule, {.style = style});
    for (const TracedRankTimes& rank : own.ranks) {
      double sum = rank.busy_s;
      for (const plan::Seconds& idle : rank.idle)
        sum += idle.value;
      CHECK(near(sum, own.pipeline.timeline.length.value, 1e-9));
    }
    // The rules are those of a prediction: rank 3 waits for its first forward, rank 0 at the end.
    const auto cause = [&](std::size_t rank, plan::IdleCause which) {
      return own.ranks[rank].idle[static_cast<std::size_t>(which)].value;
    };
    CHECK(cause(3, plan::IdleCause::WarmUp) > 11e-3);
    CHECK(cause(3, plan::IdleCause::Launch) < 1e-3);
    CHECK(cause(0, plan::IdleCause::WarmUp) > 11e-3);
  }
}

TEST_CASE("Clocks that differ are aligned by causality", "[loop][explain]") {
  const plan::Schedule schedule = plan::make_schedule("1f1b", 3, 6);
  const SyntheticTraces together{.style = TraceStyle::Operators};
  SyntheticTraces apart = together;
  apart.clocks = {0, 2.5, -1.25};
  const TraceExplanation own = explained(schedule, apart);
  REQUIRE(own.pipeline.clock_s.size() == 3);
  INFO(fmt::format("{}", fmt::join(own.pipeline.clock_s, " ")));
  CHECK(near(own.pipeline.clock_s[1], 2.5, 4e-4));
  CHECK(near(own.pipeline.clock_s[2], -1.25, 8e-4));
  CHECK(own.schedule.name == "1f1b");
  CHECK(near(own.pipeline.timeline.length.value,
             explained(schedule, together).pipeline.timeline.length.value, 1e-3));
  // Clocks that agree stay unchanged.
  CHECK(explained(schedule, together).pipeline.clock_s == std::vector<double>{0, 0, 0});
}

TEST_CASE("The last whole step is explained, or the requested one", "[loop][explain]") {
  const plan::Schedule schedule = plan::make_schedule("1f1b", 2, 4);
  for (const auto style : {TraceStyle::Ranges, TraceStyle::Operators}) {
    const auto traces = traces_of(schedule, {.style = style, .steps = 3});
    CHECK(explained(traces).pipeline.step == 6);
    CHECK(explained(traces, 5).pipeline.step == 5);
    CHECK(explained(traces).pipeline.steps == 3);
    CHECK(refusal(traces, 9) == "rank0.json: step 9 is not in it; it has 4, 5, 6");
  }
  const auto unnamed = explained(
      traces_of(schedule, {.style = TraceStyle::Ranges, .steps = 3, .step_ranges = false}));
  CHECK_FALSE(unnamed.pipeline.step);
  CHECK(unnamed.pipeline.steps == 3);
}

TEST_CASE("An unknown schedule is reported with the nearest one and the first difference",
          "[loop][explain]") {
  const plan::Schedule schedule =
      plan::parse_csv("0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1F3,1B2,1B3\n", "own");
  const TraceExplanation own = explained(schedule);
  CHECK(own.schedule.name == "");
  CHECK(own.schedule.nearest == "1f1b");
  CHECK(own.schedule.difference == "rank 1, action 6: 1F3 ran, but the schedule has 1B2");
  CHECK(to_json(own)["schedule"] == "unknown");
  CHECK(to_json(own)["nearest"]["schedule"] == "1f1b");
}

TEST_CASE("A simulation with the traced costs takes as long as the trace", "[loop][explain]") {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zbv", "interleaved-1f1b"}) {
    const int chunks = plan::find_schedule(name).chunks == plan::Chunks::One ? 1 : 2;
    const TraceExplanation own = explained(test::make(name, 3, 6, chunks), {.slow_stage = 2});
    INFO(name);
    CHECK(near(own.alternatives.now_s, own.pipeline.timeline.length.value, 4e-4));
    // The scenario that is written gives the same result.
    const auto plan = sim::lay_out(own.costs.scenario, own.costs.costs);
    CHECK(
        near(sim::Simulator(*plan.structure).iteration(plan.costs), own.alternatives.now_s, 1e-9));
  }
}

TEST_CASE("Alternatives are simulated, the fastest first", "[loop][explain]") {
  const TraceExplanation own = explained(plan::make_schedule("1f1b", 2, 8), {.slow_stage = 1});
  const auto found = [&](const std::string& what) {
    for (const Alternative& change : own.alternatives.all)
      if (change.change.starts_with(what))
        return change.iteration_s;
    return -1.0;
  };
  CHECK(found("pipeline.schedule=zb-h1") > 0);
  CHECK(found("pipeline.schedule=zb-h1") < own.alternatives.now_s);
  CHECK(found("pipeline.microbatches=16") < own.alternatives.now_s);
  CHECK(found("pipeline.microbatches=4") > own.alternatives.now_s);
  CHECK(std::is_sorted(own.alternatives.all.begin(), own.alternatives.all.end(),
                       [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; }));
  CHECK(found("pipeline.schedule=dualpipe ") < 0);  // the all-reduce of its replicas' gradients
                                                    // cannot be priced
}

TEST_CASE("The written files can be read by other commands", "[loop][explain]") {
  const TempFolder folder;
  std::vector<std::string> found;
  const JobExplanation job = explain_traces(
      written(folder, traces_of(plan::make_schedule("1f1b", 2, 4), {.slow_stage = 0})), {}, found);
  const TraceExplanation& own = job.explanation;
  write_explanation(folder.path() / "out", job);
  const auto scenario =
      plan::scenario_from_json(plan::JsonDocument::read(folder.path() / "out" / "scenario.json"));
  const auto costs =
      plan::layer_costs_from_json(plan::JsonDocument::read(folder.path() / "out" / "costs.json"));
  CHECK(scenario.pipeline.schedule == "1f1b");
  const auto plan = sim::lay_out(scenario, costs);
  CHECK(near(sim::Simulator(*plan.structure).iteration(plan.costs), own.alternatives.now_s, 1e-9));
  std::vector<std::string> problems;
  for (const char* file : {"timeline.pwt", "timeline.json"}) {
    const plan::Timeline timeline = read_timeline(folder.path() / "out" / file, problems);
    CHECK(timeline.ranks == 2);
    CHECK(near(timeline.length.value, own.pipeline.timeline.length.value, 1e-9));
    CHECK(timeline.idle == own.pipeline.timeline.idle);
  }
}

TEST_CASE("Functions of torch, Megatron and DeepSpeed are identified by file and name",
          "[loop][explain]") {
  const auto call = [](const std::string& name) {
    return fmt::format(
        R"({{"ph":"X","cat":"python_function","name":"{}","pid":1,"tid":1,"ts":1,"dur":2}})", name);
  };
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto kinds = [&](const std::string& file, const std::string& forward,
                         const std::string& backward) {
    const auto events = read_pipeline_events(
        folder.write("t.json", fmt::format("[{},{}]", call(file + "(7): " + forward),
                                           call(file + "(70): " + backward))),
        problems);
    return events.ranges.size() == 2 && events.ranges[0].kind == RangeKind::ForwardCall &&
           events.ranges[1].kind == RangeKind::BackwardCall;
  };
  CHECK(kinds("torch/distributed/pipelining/stage.py", "forward_one_chunk", "backward_one_chunk"));
  CHECK(kinds("megatron/core/pipeline_parallel/schedules.py", "forward_step", "backward_step"));
  CHECK(kinds("deepspeed/runtime/pipe/engine.py", "_exec_forward_pass", "_exec_backward_pass"));
  CHECK_FALSE(kinds("pretrain_gpt.py", "forward_step", "backward_step"));
}

TEST_CASE("Missing and duplicate ranks are reported", "[loop][explain]") {
  for (const auto style : {TraceStyle::Ranges, TraceStyle::Operators}) {
    const auto traces = traces_of(plan::make_schedule("1f1b", 4, 8), {.style = style});
    CHECK(refusal({traces[0], traces[1], traces[1], traces[3]}) ==
          "rank1.json and rank2.json: both are of rank 1 (distributedInfo.rank); give one trace "
          "for each rank");
    CHECK(refusal({traces[0], traces[1], traces[3]}) ==
          "ranks 0, 1, 3: rank 2 is missing; give the traces of all ranks of a pipeline");
    const std::string last = refusal({traces[0], traces[1], traces[2]});
    INFO(last);
    CHECK(last.find(style == TraceStyle::Ranges ? "no trace has stage 3" : "it is not the last") !=
          std::string::npos);
    const std::string first = refusal({traces[1], traces[2], traces[3]});
    INFO(first);
    CHECK(first.find(style == TraceStyle::Ranges ? "no trace has stage 0"
                                                 : "it is not the first") != std::string::npos);
  }
}

TEST_CASE("Traces of different runs are not combined", "[loop][explain]") {
  const auto four = traces_of(plan::make_schedule("1f1b", 2, 4));
  const auto six = traces_of(plan::make_schedule("1f1b", 2, 6));
  CHECK(refusal({four[0], six[1]}) ==
        "rank1.json (rank 1): the step has 6 microbatches, but in rank0.json (rank 0) it has 4: "
        "they are of different runs, or of different steps");
  const auto larger = traces_of(plan::make_schedule("1f1b", 2, 4), {.world_size = 8});
  CHECK(refusal({four[0], larger[1]}) ==
        "rank1.json: distributedInfo.world_size is 8, but rank0.json has 2: they are of different "
        "runs");
  const auto operators =
      traces_of(plan::make_schedule("1f1b", 2, 4), {.style = TraceStyle::Operators});
  CHECK(
      refusal({four[0], operators[1]}) ==
      "rank1.json: its actions were found by operators, those of rank0.json by ranges: they are of "
      "different runs");
  const auto later = traces_of(plan::make_schedule("1f1b", 2, 4), {.clocks = {0, 3600}});
  CHECK(refusal({four[0], later[1]}).find("3600 s apart according to their sends and receives") !=
        std::string::npos);
  const auto gpipe = traces_of(plan::make_schedule("gpipe", 2, 4));
  CHECK(refusal({four[0], gpipe[1]})
            .find("not a whole pipeline: deadlock: rank 0 at 0B0 waits for") != std::string::npos);
}

TEST_CASE("A file that is not a pipeline's trace is rejected with a hint", "[loop][explain]") {
  CHECK(refusal({"[]"}).starts_with("rank0.json: no pipeline in it: it has neither ranges called"));
  CHECK(refusal({R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1}])"})
            .starts_with("rank0.json: no pipeline in it"));
  CHECK(refusal({"garbage"}) ==
        "rank0.json: not a Chrome trace: expected a JSON list of events, or an object with such a "
        "list "
        "as \"traceEvents\"");
  CHECK(refusal({""}).starts_with("rank0.json: "));
}

TEST_CASE("A truncated trace is explained up to its last whole step", "[loop][explain]") {
  auto traces =
      traces_of(plan::make_schedule("1f1b", 2, 4), {.style = TraceStyle::Operators, .steps = 3});
  traces[1].resize(traces[1].size() - 2000);
  const TempFolder folder;
  std::vector<std::string> problems;
  const TraceExplanation own = explain_traces(written(folder, traces), {}, problems).explanation;
  CHECK(own.pipeline.step == 5);
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().find("the file is cut off") != std::string::npos);
  const std::string asked = refusal(traces, 6);
  CHECK(asked == "rank1.json: step 6 is not whole; it has 4, 5, 6 (not whole)");

  auto one = traces_of(plan::make_schedule("1f1b", 2, 4));
  one[1].resize(one[1].size() - 500);
  CHECK(
      refusal(one).starts_with("no step is whole on all ranks: rank0.json has 4; rank1.json "
                               "has 4 (not whole); profile at least one step"));
}

}  // namespace pipewright::trace::explanation_test
