#include "pipewright/trace/explain/job_explanation.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline_transfers.hpp"
#include "pipewright/trace/explain/job_layout.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/synthetic_traces.hpp"

namespace pipewright::trace::job_explanation_test {

using test::error_of;
using test::SyntheticTraces;
using test::TempFolder;
using test::TraceStyle;

/// A trainer's names for the groups along each axis.
using GroupNames = std::vector<std::pair<std::string, std::string>>;
const GroupNames torch_names{{"pipe", "mesh_pp"}, {"data", "mesh_dp"}, {"tensor", "mesh_tp"}};
const GroupNames megatron_names{{"tensor", "TENSOR_MODEL_PARALLEL_GROUP"},
                                {"data", "DATA_PARALLEL_GROUP"},
                                {"pipe", "PIPELINE_MODEL_PARALLEL_GROUP"}};

/// Returns the groups of a rank, as torch's profiler writes them.
std::string groups_of(const plan::Topology& axes, int rank, const GroupNames& names) {
  plan::Json groups{{{"pg_name", "0"},
                     {"pg_desc", "default_pg"},
                     {"backend_config", "cpu:gloo,cuda:nccl"},
                     {"pg_size", axes.rank_count()},
                     {"ranks", axes.ranks_where({})}}};
  for (const auto& [axis, name] : names) {
    if (axes.find_length(axis) == 0)
      continue;
    for (const std::vector<int>& group : axes.groups_along(axis))
      if (std::find(group.begin(), group.end(), rank) != group.end())
        groups.push_back({{"pg_name", std::to_string(groups.size())},
                          {"pg_desc", name},
                          {"backend_config", "cpu:gloo,cuda:nccl"},
                          {"pg_size", group.size()},
                          {"ranks", group}});
  }
  return groups.dump();
}

struct SyntheticJob {
  plan::Topology axes;
  SyntheticTraces made{};
  GroupNames names{};  // empty: the traces name no groups
  int slow = 1;        // the pipeline that takes half as long again
  double later = 0;    // seconds by which it begins later
};

/// Returns the texts of all ranks, in the order of their numbers.
std::vector<std::string> traces_of_job(const SyntheticJob& job) {
  std::vector<std::string> texts(static_cast<std::size_t>(job.axes.rank_count()));
  int pipeline = 0;
  for (const std::vector<int>& numbers : job.axes.groups_along("pipe")) {
    SyntheticTraces made = job.made;
    made.numbers = numbers;
    made.world_size = job.axes.rank_count();
    if (!job.names.empty())
      for (const int number : numbers)
        made.groups.push_back(groups_of(job.axes, number, job.names));
    if (pipeline++ == job.slow) {
      made.forward_s *= 1.5;
      made.clocks.assign(numbers.size(), job.later);
    }
    const auto own =
        test::traces_of(plan::make_schedule("1f1b", static_cast<int>(numbers.size()), 4), made);
    for (std::size_t rank = 0; rank < numbers.size(); ++rank)
      texts[static_cast<std::size_t>(numbers[rank])] = own[rank];
  }
  return texts;
}

using Files = std::vector<std::filesystem::path>;

Files files_of(const TempFolder& folder, const std::vector<std::string>& texts) {
  Files files;
  for (const std::string& text : texts)
    files.push_back(folder.write("rank" + std::to_string(files.size()) + ".json", text));
  return files;
}

JobExplanation explained(const Files& files, const TraceChoice& choice = {}) {
  std::vector<std::string> problems;
  JobExplanation job = explain_traces(files, choice, problems);
  CHECK(problems == std::vector<std::string>{});
  return job;
}

/// Returns the message without the folder.
std::string refusal(const std::vector<std::string>& texts, const std::string& axes = "") {
  const TempFolder folder;
  std::string message = error_of([&] { explained(files_of(folder, texts), {.axes = axes}); });
  for (std::size_t at; (at = message.find(folder.path().string() + "/")) != std::string::npos;)
    message.erase(at, folder.path().string().size() + 1);
  return message;
}

/// Checks that the ranks [first, first + own.ranks) of the job are exactly those of the pipeline.
void require_within(const plan::Timeline& job, int first, const plan::Timeline& own, double began) {
  std::size_t at = 0;
  for (const plan::Span& span : job.spans) {
    if (span.rank < first || span.rank >= first + own.ranks)
      continue;
    REQUIRE(at < own.spans.size());
    plan::Span moved = own.spans[at++];
    moved.rank += first;
    moved.start += plan::Seconds{began};
    moved.end += plan::Seconds{began};
    CHECK(span == moved);
  }
  CHECK(at == own.spans.size());
}

TEST_CASE("The slower of two pipelines is named, and explained as if it were alone",
          "[loop][explain]") {
  for (const auto style : {TraceStyle::Ranges, TraceStyle::MicrobatchRanges, TraceStyle::Operators})
    for (const int slow : {0, 1}) {
      const TempFolder folder;
      const Files files = files_of(folder, traces_of_job({.axes = {{"pipe", "data"}, {2, 2}},
                                                          .made = {.style = style},
                                                          .slow = slow}));
      const Files shuffled{files[2], files[1], files[3], files[0]};
      const JobExplanation job = explained(shuffled, {.axes = "pipe=2,data=2"});
      REQUIRE(job.pipelines.size() == 2);
      CHECK(to_string(job.pipelines[0].place) == "data 0");
      CHECK(to_string(job.pipelines[1].place) == "data 1");
      CHECK(job.pipelines[0].ranks == std::vector{0, 2});
      CHECK(job.pipelines[1].ranks == std::vector{1, 3});
      CHECK(job.slowest == static_cast<std::size_t>(slow));
      CHECK(place_of_rank(job.pipelines[1], 1) == "pipe 1, data 1");

      CHECK(job.timeline.ranks == 4);
      for (const std::size_t at : {0U, 1U}) {
        const JobExplanation alone = explained({files[at], files[at + 2]});
        CHECK(alone.pipelines.size() == 1);
        CHECK(alone.timeline == alone.explanation.pipeline.timeline);
        const TraceExplanation& own = alone.explanation;
        CHECK(job.pipelines[at].iteration_s == own.pipeline.timeline.length.value);
        CHECK(job.pipelines[at].busy_s[1] == own.ranks[1].busy_s);
        require_within(job.timeline, 2 * static_cast<int>(at), own.pipeline.timeline, 0);
        if (at == job.slowest)
          CHECK(to_json(job.explanation).dump() == to_json(own).dump());
      }
    }
}

TEST_CASE("The timeline of a job has its pipelines on one clock", "[loop][explain]") {
  const TempFolder folder;
  const JobExplanation job = explained(
      files_of(folder, traces_of_job({.axes = {{"data", "pipe"}, {2, 2}}, .later = 0.25})),
      {.axes = "data=2,pipe=2"});
  CHECK(job.pipelines[1].ranks == std::vector{2, 3});
  CHECK(job.pipelines[0].began_s == 0);
  CHECK(job.pipelines[1].began_s == Approx(0.25).margin(1e-8));
  CHECK(job.timeline.length.value == Approx(0.25 + job.pipelines[1].iteration_s).margin(1e-8));
  require_within(job.timeline, 2, job.explanation.pipeline.timeline, job.pipelines[1].began_s);

  // Arrows stay within a pipeline, and every idle time of a rank has a cause.
  const auto transfers = plan::transfers_of(job.timeline);
  CHECK(transfers.size() == 16);
  for (const auto& [send, receive] : transfers)
    CHECK(job.timeline.spans[send].rank / 2 == job.timeline.spans[receive].rank / 2);
  const auto busy = plan::busy_per_rank(job.timeline);
  const auto idle = plan::idle_by_cause(job.timeline);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    double sum = busy[rank].value;
    for (const plan::Seconds& own : idle[rank])
      sum += own.value;
    CHECK(sum == Approx(job.timeline.length.value).epsilon(1e-9));
  }

  write_explanation(folder.path() / "out", job);
  std::vector<std::string> problems;
  for (const char* file : {"timeline.pwt", "timeline.json"}) {
    const plan::Timeline timeline = read_timeline(folder.path() / "out" / file, problems);
    CHECK(timeline.ranks == 4);
    CHECK(timeline.length == job.timeline.length);
    CHECK(timeline.idle == job.timeline.idle);
    CHECK(plan::transfers_of(timeline).size() == 16);
  }
}

TEST_CASE("Groups named by torch and Megatron-LM determine the ranks' coordinates",
          "[loop][explain]") {
  const plan::Topology axes{{"pipe", "data", "tensor"}, {2, 2, 2}};
  for (const GroupNames& names : {torch_names, megatron_names}) {
    const TempFolder folder;
    const Files files = files_of(folder, traces_of_job({.axes = axes, .names = names, .slow = 2}));
    const JobExplanation job = explained(files);
    const JobExplanation told = explained(files, {.axes = "pipe=2,data=2,tensor=2"});
    CHECK(to_json(job).dump() == to_json(told).dump());
    REQUIRE(job.pipelines.size() == 4);
    CHECK(job.slowest == 2);
    CHECK(to_string(job.pipelines[2].place) == "data 1, tensor 0");
    CHECK(job.pipelines[2].ranks == std::vector{2, 6});
    CHECK(job.timeline.ranks == 8);
    const plan::Json json = to_json(job);
    CHECK(json["slowest"] == 2);
    CHECK(json["pipelines"][3]["axes"] == plan::Json{{"data", 1}, {"tensor", 1}});
    CHECK(json["pipelines"][3]["ranks"] == plan::Json{3, 7});
    CHECK(json["ranks"][1]["rank"] == 6);

    // Some of the pipelines can also be explained.
    const JobExplanation some = explained({files[2], files[6], files[1], files[5]});
    CHECK(some.pipelines.size() == 2);
    CHECK(to_json(some.explanation).dump() == to_json(job.explanation).dump());
  }
}

TEST_CASE("Sharded replicas are data-parallel, and pipelines along unknown axes are numbered",
          "[loop][explain]") {
  const plan::Topology axes{{"pipe", "replicate", "shard"}, {2, 2, 2}};
  const auto labels = [&](const GroupNames& names) {
    const TempFolder folder;
    std::string text;
    for (const auto& own :
         explained(files_of(folder, traces_of_job({.axes = axes, .names = names}))).pipelines)
      text += to_string(own.place) + "; ";
    return text;
  };
  CHECK(labels({{"pipe", "mesh_pp"},
                {"replicate", "mesh_dp_replicate"},
                {"shard", "mesh_dp_shard"}}) == "data 0; data 1; data 2; data 3; ");
  CHECK(labels({{"pipe", "mesh_pp"}, {"replicate", "mesh_dp"}, {"shard", "mesh_ep"}}) ==
        "pipeline 0; pipeline 1; pipeline 2; pipeline 3; ");
}

TEST_CASE("All pipelines are explained at the same step", "[loop][explain]") {
  auto texts = traces_of_job(
      {.axes = {{"pipe", "data"}, {2, 2}}, .made = {.style = TraceStyle::Operators, .steps = 3}});
  const TempFolder folder;
  CHECK(explained(files_of(folder, texts), {.axes = "pipe=2,data=2"}).explanation.pipeline.step ==
        6);
  texts[0].resize(texts[0].size() - 2000);
  std::vector<std::string> problems;
  const JobExplanation job =
      explain_traces(files_of(folder, texts), {.axes = "pipe=2,data=2"}, problems);
  CHECK(problems.size() == 1);
  CHECK(job.slowest == 1);
  CHECK(job.explanation.pipeline.step == 5);
}

TEST_CASE("Ranks of several pipelines without groups or axes are rejected", "[loop][explain]") {
  for (const auto style : {TraceStyle::Ranges, TraceStyle::Operators}) {
    const std::string message =
        refusal(traces_of_job({.axes = {{"pipe", "data"}, {2, 2}}, .made = {.style = style}}));
    INFO(message);
    CHECK(message.find("give the traces of all its ranks, and --axes if they are of several "
                       "pipelines") != std::string::npos);
  }
}

TEST_CASE("Axes that contradict the traces are rejected", "[loop][explain]") {
  const auto texts = traces_of_job({.axes = {{"pipe", "data"}, {2, 2}}});
  CHECK(refusal({texts[0], texts[1], texts[2]}, "pipe=2,data=2") ==
        "--axes: pipe 2 x data 2 is 4 ranks, but there are 3 traces; give one for each rank of the "
        "job");
  CHECK(
      refusal(texts, "pipe=2,data=3") ==
      "--axes: pipe 2 x data 3 is 6 ranks, but there are 4 in the job (distributedInfo.world_size "
      "of rank0.json)");
  CHECK(refusal({texts[0], texts[1], texts[1], texts[3]}, "pipe=2,data=2") ==
        "rank1.json and rank2.json: both are of rank 1 (distributedInfo.rank); give one trace for "
        "each rank");
  // The ranks' order contradicts the axes.
  CHECK(refusal(texts, "data=2,pipe=2").find("not a whole pipeline") != std::string::npos);

  const auto named = traces_of_job({.axes = {{"pipe", "data"}, {2, 2}}, .names = torch_names});
  CHECK(refusal(named, "data=2,pipe=2") ==
        "--axes: ranks 0, 1 would be a pipeline, but the traces say (distributedInfo.pg_config) "
        "that 0, 2 are; leave --axes out");
  CHECK(refusal({named[0], named[1], named[3]}) ==
        "ranks 0, 2 are a pipeline (distributedInfo.pg_config): rank 2 is missing; give the traces "
        "of all ranks of a pipeline");
  const auto other = traces_of_job({.axes = {{"data", "pipe"}, {2, 2}}, .names = torch_names});
  CHECK(refusal({named[0], named[1], other[2], other[3]}) ==
        "rank 2 appears twice in the pipelines that the traces name (distributedInfo.pg_config), "
        "0, 2 and 2, 3: they are of different runs");
  CHECK(refusal({named[0], texts[1], named[2], texts[3]}) ==
        "rank1.json: rank 1 is in none of the pipelines that the traces name "
        "(distributedInfo.pg_config): they are of different runs");
  const auto later = traces_of_job({.axes = {{"pipe", "data"}, {2, 2}}, .later = 3600});
  CHECK(refusal(later, "pipe=2,data=2") ==
        "rank1.json: its step began 3600 s after the same of another pipeline "
        "(baseTimeNanoseconds): they are of different runs");
}

TEST_CASE("Invalid axes are rejected with an example", "[loop][explain]") {
  CHECK(axes_of("pipe=4,data=2,tensor=3") == plan::Topology({"pipe", "data", "tensor"}, {4, 2, 3}));
  const auto why = [](const std::string& text) {
    const std::string message = error_of([&] { axes_of(text); });
    const std::string begin = "--axes \"" + text + "\": ";
    const std::string end =
        "; write axes with their lengths, the last one fastest, such as pipe=4,data=2 (the axes "
        "are pipe, data, context, tensor)";
    CHECK(message.starts_with(begin));
    CHECK(message.ends_with(end));
    return message.size() < begin.size() + end.size()
               ? message
               : message.substr(begin.size(), message.size() - begin.size() - end.size());
  };
  CHECK(why("") == "\"\" has no length");
  CHECK(why("pipe") == "\"pipe\" has no length");
  CHECK(why("pipe=2,") == "\"\" has no length");
  CHECK(why("pipe=2x") == "\"pipe=2x\" has no length");
  CHECK(why("pipe=2,model=2") == "no axis is called \"model\"");
  CHECK(why("data=2") == "pipe is missing");
  CHECK(why("pipe=2,pipe=2") == "the axis \"pipe\" occurs twice");
  CHECK(why("pipe=2,data=0") == "the axis \"data\" has the length 0, the least is 1");
}

}  // namespace pipewright::trace::job_explanation_test
