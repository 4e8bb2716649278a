// Runs that name their schedule, and give their speed in other units than a time.

#include <set>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace schedule_runs_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

const std::string header = "gpus,pp,b,m,layers,hidden,heads,seq,schedule";
const std::string sizes = "8,8,6,24,30,2304,24,1024,";

MeasuredRun run_called(const std::string& schedule) {
  return read_runs(std::string_view(header + "\n" + sizes + schedule + "\n"), "t.csv",
                   RunTimes::Optional)
      .runs.at(0);
}

TEST_CASE("A schedule is known by its names in papers, in torch and in the catalog",
          "[plan][measured]") {
  struct Name {
    const char* said;
    const char* schedule;
    int chunks;
  };
  for (const auto& [said, schedule, chunks] :
       {Name{"1F1B", "1f1b", 1}, Name{"DAPPLE", "1f1b", 1}, Name{"Schedule1F1B", "1f1b", 1},
        Name{"GPipe", "gpipe", 1}, Name{"F-then-B", "gpipe", 1},
        Name{"1F1B-I", "interleaved-1f1b", 4},
        Name{"ScheduleInterleaved1F1B", "interleaved-1f1b", 4}, Name{"ZB-H1", "zb-h1", 1},
        Name{"ZB-1p", "zb-h1", 1}, Name{"ZB_2P", "zb-2p", 1}, Name{"ZB-V", "zbv", 2},
        Name{"V-ZB", "v-zb", 2}, Name{"ScheduleZBVZeroBubble", "zbv", 2},
        Name{"V-Half", "v-half", 2}, Name{"v min", "v-min", 2}}) {
    CAPTURE(said);
    const MeasuredRun run = run_called(said);
    CHECK(run.names_schedule);
    CHECK(run.cut.schedule == schedule);
    CHECK(run.cut.chunks == chunks);
    CHECK(run.cut.recompute == RecomputeMode::None);
  }
  const MeasuredRun recomputes = run_called("1F1B-R");
  CHECK(recomputes.cut.schedule == "1f1b");
  CHECK(recomputes.cut.recompute == RecomputeMode::Full);
}

TEST_CASE("Every alias and every class of torch is read as the schedule that declares it",
          "[plan][measured]") {
  int read = 0;
  const auto check = [&](const std::string& said, const std::string& schedule) {
    CAPTURE(said);
    CHECK(run_called(said).cut.schedule == schedule);
    ++read;
  };
  for (const ScheduleDescriptor& entry : schedules()) {
    for (const std::string& alias : entry.aliases)
      check(alias, entry.name);
    for (const NamedLimit& limit : entry.named_limits)
      check(limit.name, limit.name);
    if (!entry.torch_class.empty())
      check("Schedule" + entry.torch_class, entry.name);
  }
  CHECK(read > 20);
}

TEST_CASE("Every schedule of the catalog can be named in a table", "[plan][measured]") {
  std::set<std::string> read;
  for (const std::string& name : schedule_names()) {
    const RunTable table = read_runs(
        std::string_view("gpus,pp,b,m,layers,hidden,heads,seq,schedule\n4,4,1,16,32,256,4,128," +
                         name + "\n"),
        "t.csv", RunTimes::Optional);
    CAPTURE(name, table.refused.empty() ? "" : table.refused.front().reasons.front());
    if (table.refused.empty())
      read.insert(table.runs.at(0).cut.schedule);
    else
      CHECK(table.refused.front().reasons.front().find("is not predicted") != std::string::npos);
  }
  CHECK(read.size() > 12);
}

TEST_CASE("Only interleaving as in Megatron-LM divides microbatches into rounds of ranks",
          "[plan][measured]") {
  // 6 microbatches on 4 ranks.
  std::size_t timed = 0;
  for (const std::string& name : schedule_names()) {
    const RunTable table = read_runs(
        std::string_view("gpus,pp,b,m,layers,hidden,heads,seq,schedule\n4,4,1,6,32,256,4,128," +
                         name + "\n"),
        "t.csv", RunTimes::Optional);
    if (!table.refused.empty())
      continue;
    CAPTURE(name);
    const MeasuredRun& run = table.runs.at(0);
    CHECK((run.cut.group > 0) == (run.cut.schedule == default_schedule(2, 4).name));
    try {
      pipeline_shape(run.cut, run.training.batch);
      ++timed;
    } catch (const std::runtime_error& error) {  // InputError or Infeasible
      CHECK(std::string(error.what()).find("has no group size") == std::string::npos);
    }
  }
  CHECK(timed >= 6);  // among them 1f1b-v, zbv, v-half and v-min
}

TEST_CASE("Schedules without a generator are rejected with the reason", "[plan][measured]") {
  const auto reason = [](const std::string& schedule) {
    return read_runs(std::string_view(header + "\n" + sizes + schedule + "\n"), "t.csv",
                     RunTimes::Optional)
        .refused.at(0)
        .reasons.at(0);
  };
  CHECK(reason("PipeDream-2BW").find("\"PipeDream-2BW\" is not predicted: it has no flush") !=
        std::string::npos);
  CHECK(reason("Seq1F1B").find("slices") != std::string::npos);
  CHECK(reason("ZB-Q").find("\"ZB-Q\" is not a known schedule; known are 1F1B-I") !=
        std::string::npos);
  CHECK(error_of([&] {
          read_runs(std::string_view(header + ",iter_s\n" + sizes + "ZB-Q,1\n"), "t.csv",
                    RunTimes::Needed);
        }).find("t.csv:2:") != std::string::npos);
}

TEST_CASE("The first and the last stage have one layer less under any schedule",
          "[plan][measured]") {
  CHECK(run_called("1F1B").cut.stage_layers == std::vector{3, 4, 4, 4, 4, 4, 4, 3});
  // On the first rank, the head and the embedding are one stage each.
  const MeasuredRun bare = read_runs(std::string_view(header + "\n8,8,6,24,14,2304,24,1024,ZB-V\n"),
                                     "t.csv", RunTimes::Optional)
                               .runs.at(0);
  CHECK(bare.cut.layers_of(0, 14) == 0);
  CHECK(bare.cut.layers_of(15, 14) == 0);
  CHECK(bare.cut.layers_of(7, 14) == 1);
}

TEST_CASE(
    "Runs with a named schedule block both ends of a transfer, recompute nothing and pad the "
    "vocabulary",
    "[plan][measured]") {
  const MeasuredRun named = run_called("1F1B-I");
  CHECK(named.cut.holds_both_ends);
  CHECK(named.tells_recompute);
  CHECK(named.training.model.vocabulary == 50304);  // 393 · 128

  const MeasuredRun overlaps =
      read_runs(std::string_view(header + ",overlap_p2p\n" + sizes + "1F1B-I,yes\n"), "t.csv",
                RunTimes::Optional)
          .runs.at(0);
  CHECK_FALSE(overlaps.cut.holds_both_ends);

  const MeasuredRun unnamed =
      read_runs(std::string_view("gpus,pp,b,m,layers,hidden,heads,seq\n8,8,6,24,30,2304,24,1024\n"),
                "t.csv", RunTimes::Optional)
          .runs.at(0);
  CHECK_FALSE(unnamed.names_schedule);
  CHECK_FALSE(unnamed.cut.holds_both_ends);
  CHECK_FALSE(unnamed.tells_recompute);
  CHECK(unnamed.training.model.vocabulary == 50257);

  CHECK(named.training.gradient_bytes == 2);
  CHECK(unnamed.training.gradient_bytes == 4);
}

TEST_CASE("A rate is converted to the time of an iteration", "[plan][measured]") {
  const auto run_at = [](const std::string& column, const std::string& value) {
    auto table =
        read_runs(std::string_view(header + "," + column + "\n" + sizes + "1F1B," + value + "\n"),
                  "t.csv", RunTimes::Needed);
    set_times_by_peak(table.runs, 312e12);
    return table.runs.at(0);
  };
  const double samples = 6 * 24;
  CHECK(run_at("samples_per_s", "100").iteration->value == Approx(samples / 100));
  CHECK(run_at("samples_per_gpu_per_s", "14.5").iteration->value == Approx(samples / 8 / 14.5));
  CHECK(run_at("tokens_per_s", "1e5").iteration->value == Approx(samples * 1024 / 1e5));
  CHECK(run_at("tokens_per_s_per_gpu", "1e4").iteration->value == Approx(samples * 1024 / 8e4));
  const double flops = training_flops(run_called("1F1B").training);
  const double of_token = 30 * (12 * 2304 + 2 * 1024) + 50304;  // Megatron-LM's count
  CHECK(flops == Approx(samples * 1024 * 6 * 2304 * of_token).epsilon(1e-3));
  CHECK(run_at("tflops_per_gpu", "150").iteration->value == Approx(flops / 8 / 150e12));
  CHECK(run_at("mfu_pct", "50").iteration->value == Approx(flops / 8 / 156e12));
  CHECK(error_of([&] { run_at("mfu_pct", "-1"); }).find("a rate is needed here") !=
        std::string::npos);
}

}  // namespace schedule_runs_test
