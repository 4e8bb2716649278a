// Checks the same run, written once by torch's profiler and once by Nsight Systems.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/trace/explain/job_explanation.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/nsys_export.hpp"
#include "trace/support/synthetic_traces.hpp"

namespace pipewright::trace::nsys_test {

using test::error_of;
using test::NsysExport;
using test::SyntheticTraces;
using test::TempFolder;
using test::TraceStyle;

using Files = std::vector<std::filesystem::path>;

TraceExplanation explained(const Files& files) {
  std::vector<std::string> problems;
  TraceExplanation own = explain_traces(files, {}, problems).explanation;
  CHECK(problems == std::vector<std::string>{});
  return own;
}

/// Returns all figures, without the names of the files.
plan::Json figures(const TraceExplanation& own) {
  plan::Json json = to_json(own);
  for (auto& rank : json["ranks"])
    rank.erase("file");
  return json;
}

Files kineto_files(const TempFolder& folder, const std::vector<std::string>& texts) {
  Files files;
  for (const std::string& text : texts)
    files.push_back(folder.write("rank" + std::to_string(files.size()) + ".json", text));
  return files;
}

Files nsys_files(const TempFolder& folder, const std::vector<std::string>& texts) {
  Files files;
  for (const std::string& text : texts)
    files.push_back(
        test::nsys_of(folder.path() / ("rank" + std::to_string(files.size()) + ".sqlite"), text));
  return files;
}

/// Returns the message without the folder's name.
std::string refusal(const TempFolder& folder, const Files& files) {
  std::string message = error_of([&] { explained(files); });
  for (std::size_t at; (at = message.find(folder.path().string() + "/")) != std::string::npos;)
    message.erase(at, folder.path().string().size() + 1);
  return message;
}

TEST_CASE("An nsys export has the same explanation as Kineto's trace of the same run",
          "[loop][explain]") {
  int schedules = 0;
  for (const plan::ScheduleDescriptor& entry : plan::schedules()) {
    if (entry.is_forward_only || entry.is_data_parallel || entry.step_every != nullptr)
      continue;
    const int chunks = entry.chunks == plan::Chunks::One ? 1 : 2;
    const plan::Schedule schedule = test::make(entry.name, 4, 8, chunks);
    if (plan::placement_of(schedule).is_bidirectional())
      continue;
    INFO(entry.name);
    const TempFolder folder;
    const auto texts = test::traces_of(schedule, {.slow_stage = 1, .steps = 2});
    CHECK(figures(explained(nsys_files(folder, texts))) ==
          figures(explained(kineto_files(folder, texts))));
    ++schedules;
  }
  CHECK(schedules >= 15);
  for (const TraceStyle style : {TraceStyle::MicrobatchRanges, TraceStyle::Operators}) {
    const TempFolder folder;
    const auto texts =
        test::traces_of(plan::make_schedule("1f1b", 3, 6), {.style = style, .slow_stage = 1});
    const auto nsys = figures(explained(nsys_files(folder, texts)));
    CHECK(nsys == figures(explained(kineto_files(folder, texts))));
    CHECK(nsys["schedule"] == "1f1b");
    CHECK(nsys["slowest_stage"] == 1);
  }
}

TEST_CASE("One export contains several ranks, ordered by device", "[loop][explain]") {
  const TempFolder folder;
  const auto texts = test::traces_of(plan::make_schedule("1f1b", 2, 4), {.slow_stage = 1});
  NsysExport nsys(folder.path() / "node.sqlite");
  for (const int rank : {1, 0}) {
    test::add_kineto(nsys, texts[static_cast<std::size_t>(rank)], 40 - rank);
    nsys.kernel(9999, 10, 20, 40 - rank, "ncclDevKernel_SendRecv", rank);
  }
  const TraceExplanation own = explained({nsys.done()});
  CHECK(own.schedule.name == "1f1b");
  CHECK(own.slowest_stage == 1);
  CHECK(own.pipeline.files[0].ends_with("node.sqlite (process 40)"));
  CHECK(own.pipeline.files[1].ends_with("node.sqlite (process 39)"));
}

/// A trainer's rank: its actions, and the names of its ranges.
class TrainerRank {
 public:
  TrainerRank(const plan::Schedule& schedule, const plan::Timeline& timeline, int rank)
      : is_first(rank == 0), is_last(rank + 1 == static_cast<int>(schedule.ranks.size())) {
    for (const plan::Span& span : timeline.spans)
      if (const auto action = plan::parse_action(span.action); action && span.rank == rank)
        actions.push_back(
            {action->kind == plan::ActionKind::Forward, ns(span.start.value), ns(span.end.value)});
  }
  struct Own {
    bool forward;
    std::int64_t start, end;
  };
  static std::int64_t ns(double seconds) {
    return 1'000'000'000 + static_cast<std::int64_t>(std::llround(seconds * 1e9));
  }
  bool is_first, is_last;
  std::vector<Own> actions;
};

/// All ranks call all of these functions.
void write_megatron(NsysExport& nsys, const TrainerRank& rank) {
  const auto passing = [&](const std::string& name, std::int64_t start, std::int64_t end) {
    nsys.range("megatron.core.pipeline_parallel.p2p_communication." + name, start, end);
  };
  const auto word = [](const TrainerRank::Own& own) {
    return own.forward ? "forward" : "backward";
  };
  const auto& all = rank.actions;
  passing("recv_forward", all.front().start - 1000, all.front().start);
  for (std::size_t next = 1; next < all.size(); ++next) {
    const auto& before = all[next - 1];
    const auto& behind = all[next];
    const std::string send = fmt::format("send_{}", word(before));
    const std::string receive = fmt::format("recv_{}", word(behind));
    if (before.forward != behind.forward) {
      passing(send + "_" + receive, before.end, behind.start);
    } else {
      passing(send, before.end, before.end);
      passing(receive, before.end + 1, std::max(before.end + 1, behind.start));
    }
  }
  passing("send_backward", all.back().end, all.back().end + 1000);
}

void write_deepspeed(NsysExport& nsys, const TrainerRank& rank) {
  const auto range = [&](const std::string& name, std::int64_t start, std::int64_t end) {
    nsys.range("PipelineEngine._exec_" + name, start, end);
  };
  std::int64_t free = rank.actions.front().start - 1000;
  for (const auto& own : rank.actions) {
    if (own.forward ? !rank.is_first : !rank.is_last)
      range(own.forward ? "recv_activations" : "recv_grads", free, own.start);
    range(own.forward ? "forward_pass" : "backward_pass", own.start, own.end);
    if (own.forward || rank.is_last)  // the engine's own range, nested
      nsys.range(own.forward ? "DeepSpeedEngine.forward" : "DeepSpeedEngine.backward", own.start,
                 own.end);
    if (own.forward ? !rank.is_last : !rank.is_first)
      range(own.forward ? "send_activations" : "send_grads", own.end, own.end);
    free = own.end;
  }
}

TEST_CASE("The ranges of Megatron-LM and DeepSpeed show 1F1B as it ran", "[loop][explain]") {
  for (const int ranks : {2, 4})
    for (const auto write : {write_megatron, write_deepspeed}) {
      INFO(ranks << (write == write_megatron ? " ranks, Megatron-LM" : " ranks, DeepSpeed"));
      const TempFolder folder;
      const plan::Schedule schedule = plan::make_schedule("1f1b", ranks, 6);
      const plan::Timeline timeline = test::simulated(schedule, {.slow_stage = 1});
      Files files;
      for (int rank = 0; rank < ranks; ++rank) {
        NsysExport nsys(folder.path() / fmt::format("rank{}.sqlite", rank));
        write(nsys, TrainerRank(schedule, timeline, rank));
        nsys.session(1790857026000000000);
        files.push_back(nsys.done());
      }
      const TraceExplanation own = explained(files);
      CHECK(own.schedule.name == "1f1b");
      CHECK(own.slowest_stage == 1);
      CHECK(std::abs(own.pipeline.timeline.length.value - timeline.length.value) < 1e-8);
      CHECK(std::abs(own.costs.stages[0].forward - 4e-3) < 1e-8);
      CHECK(std::abs(own.costs.stages[1].backward - 16e-3) < 1e-8);
      CHECK(std::abs(own.costs.transfer_s - 3e-4) < 1e-6);
    }
}

TEST_CASE("Several stages per rank of Megatron are rejected instead of guessed",
          "[loop][explain]") {
  const TempFolder folder;
  NsysExport nsys(folder.path() / "r.sqlite");
  const std::string core = "megatron.core.pipeline_parallel.";
  nsys.range(core + "schedules.forward_backward_pipelining_with_interleaving.warmup", 10, 50);
  nsys.range(core + "p2p_communication.recv_forward", 10, 20);
  CHECK(refusal(folder, {nsys.done()})
            .starts_with("r.sqlite: its ranks have several stages each (Megatron's interleaved"));
}

/// Returns start and end of each action, in ns.
std::string action_times(const std::filesystem::path& file) {
  std::vector<std::string> problems;
  std::string text;
  for (const PipelineEvents& events : read_ranks(file, problems)) {
    const TracedRank rank = traced_rank(events);
    CHECK(rank.on_device);
    const double first = rank.steps.front().actions.front().start;
    for (const TracedAction& own : rank.steps.front().actions)
      text += fmt::format("{} {:.0f}-{:.0f} ", to_string(own.action), (own.start - first) * 1e9,
                          (own.end - first) * 1e9);
  }
  return text;
}

TEST_CASE("Kernels that a CUDA graph replays belong to its launch", "[loop][explain]") {
  const TempFolder folder;
  const auto exported = [&](bool is_row_a_graph) {
    NsysExport nsys(folder.path() / (is_row_a_graph ? "graph.sqlite" : "nodes.sqlite"));
    nsys.range("PP:0F0, op_id = 3", 1000, 2000);
    nsys.range("PP:0B0, op_id = 4", 2000, 3000);
    nsys.launch(1, 1500, 7, "cudaGraphLaunch_v10000");
    nsys.launch(2, 2500, 7, "cudaGraphLaunch_v10000");
    if (is_row_a_graph) {
      nsys.sql(
          "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId "
          "INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid "
          "INTEGER, graphId INTEGER, graphExecId INTEGER)");
      for (const auto& [id, start, end] : {std::tuple(1, 4000, 9000), std::tuple(2, 9500, 14000)})
        nsys.sql(
            fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES "
                        "({}, {}, 0, 1, 7, {}, {}, 5, 6)",
                        start, end, id, NsysExport::global(7)));
    } else {
      nsys.kernel(1, 4000, 6000);
      nsys.kernel(1, 6500, 9000);
      nsys.kernel(1, 3000, 9400, 7, "ncclDevKernel_SendRecv");
      nsys.kernel(2, 9500, 12000);
      nsys.kernel(2, 12500, 14000);
    }
    return nsys.done();
  };
  CHECK(action_times(exported(false)) == "0F0 0-5000 0B0 5500-10000 ");
  CHECK(action_times(exported(true)) == "0F0 0-5000 0B0 5500-10000 ");

  std::string kineto;
  const auto add = [&](const std::string& event) { kineto += (kineto.empty() ? "" : ",") + event; };
  const auto span = [&](const char* category, const char* name, int thread, double start,
                        double end) {
    add(fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{},"dur":{}}})",
                    category, name, thread, start, end - start));
  };
  const auto arrow = [&](char phase, int id, int thread, double time) {
    add(fmt::format(R"({{"ph":"{}","cat":"ac2g","name":"ac2g","id":{},"pid":1,"tid":{},"ts":{}}})",
                    phase, id, thread, time));
  };
  span("user_annotation", "PP:0F0", 1, 1, 2);
  span("user_annotation", "PP:0B0", 1, 2, 3);
  arrow('s', 1, 1, 1.5);
  arrow('s', 2, 1, 2.5);
  for (const auto& [id, start, end] : {std::tuple(1, 4., 6.), std::tuple(1, 6.5, 9.),
                                       std::tuple(2, 9.5, 12.), std::tuple(2, 12.5, 14.)}) {
    span("kernel", "gemm", 7, start, end);
    arrow('f', id, 7, start);
  }
  CHECK(action_times(folder.write("rank0.json", "[" + kineto + "]")) ==
        "0F0 0-5000 0B0 5500-10000 ");
}

TEST_CASE("An invalid nsys export is rejected with file, table and column", "[loop][explain]") {
  const TempFolder folder;
  const auto texts = test::traces_of(plan::make_schedule("1f1b", 2, 4));
  const auto broken = [&](const std::string& sql) {
    NsysExport nsys(folder.path() / "r.sqlite");
    test::add_kineto(nsys, texts[0]);
    nsys.kernel(1, 10, 20);
    nsys.sql(sql);
    return refusal(folder, {nsys.done()});
  };
  CHECK(refusal(folder, {folder.write("a.sqlite", "{}")}) ==
        "a.sqlite: not an SQLite database, which begins with \"SQLite format 3\"");
  CHECK(refusal(folder, {folder.write("a.nsys-rep", "x")}) ==
        "a.nsys-rep: a report of Nsight Systems as recorded; export it first: "
        "nsys export --type sqlite a.nsys-rep");
  CHECK(broken("DROP TABLE NVTX_EVENTS")
            .starts_with("r.sqlite: it has no table NVTX_EVENTS, so no ranges were recorded"));
  CHECK(broken("DROP TABLE StringIds") == "r.sqlite: it has no table StringIds");
  CHECK(broken("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME") ==
        "r.sqlite: it has no table CUPTI_ACTIVITY_KIND_RUNTIME");
  CHECK(broken("ALTER TABLE NVTX_EVENTS RENAME COLUMN textId TO t")
            .starts_with("r.sqlite: table NVTX_EVENTS has no column textId; it has start, end, "));
  CHECK(broken("DELETE FROM NVTX_EVENTS")
            .starts_with("r.sqlite: no range in it (NVTX_EVENTS) belongs to a pipeline"));
  CHECK(broken("UPDATE NVTX_EVENTS SET end = 5000000000000000000") ==
        "r.sqlite: NVTX_EVENTS.end is 5000000000000000000: expected nanoseconds up to "
        "4000000000000000000");
  // A view does not count, because its contents are computed.
  CHECK(broken("DROP TABLE StringIds; CREATE VIEW StringIds AS SELECT 1 AS id, 'x' AS value") ==
        "r.sqlite: it has no table StringIds");
}

TEST_CASE("A truncated export is rejected", "[loop][explain]") {
  const TempFolder folder;
  const auto texts =
      test::traces_of(plan::make_schedule("1f1b", 2, 16), {.style = TraceStyle::Operators});
  const auto file = test::nsys_of(folder.path() / "r.sqlite", texts[0]);
  const auto size = std::filesystem::file_size(file);
  for (const auto left : {size / 2, size / 4, std::uintmax_t{4096}, std::uintmax_t{100}}) {
    std::filesystem::resize_file(file, left);
    const std::string message = refusal(folder, {file});
    INFO(left << ": " << message);
    CHECK(message.starts_with("r.sqlite: "));
    CHECK((message.find("cut off") != std::string::npos ||
           message.find("damaged") != std::string::npos));
  }
}

}  // namespace pipewright::trace::nsys_test
