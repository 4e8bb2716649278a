#include "pipewright/trace/explain/job_explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/trace/explain/job_layout.hpp"
#include "pipewright/trace/files/timeline_file.hpp"

namespace pipewright::trace {
namespace {

constexpr double most_pipelines_apart = 60;  // seconds between the begins of one step

ExplainedPipeline figures_of(const JobPipeline& own, const TracedPipeline& traced) {
  ExplainedPipeline pipeline{.place = own.place,
                             .ranks = own.numbers,
                             .files = traced.files,
                             .iteration_s = traced.timeline.length.value,
                             .actions_s = plan::longest_span(traced.timeline).value};
  for (const plan::Seconds& busy : plan::busy_per_rank(traced.timeline))
    pipeline.busy_s.push_back(busy.value);
  return pipeline;
}

/// Sets the pipelines' begins from their clocks; if any clock is unknown, all begin at once.
void set_begins(std::vector<ExplainedPipeline>& pipelines,
                const std::vector<TracedPipeline>& traced) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TracedPipeline& own : traced) {
    if (!own.began_ns)
      return;
    first = std::min(first, *own.began_ns);
  }
  for (std::size_t at = 0; at < traced.size(); ++at) {
    const double apart =
        (static_cast<double>(*traced[at].began_ns) - static_cast<double>(first)) * 1e-9;
    if (apart > most_pipelines_apart)
      throw plan::InputError(
          fmt::format("{}: its step began {:.0f} s after the same of another pipeline "
                      "(baseTimeNanoseconds): they are of different runs",
                      traced[at].files.front(), apart));
    pipelines[at].began_s = static_cast<double>(*traced[at].began_ns - first) * 1e-9;
  }
}

/// Appends the ranks of a pipeline. Their idle time before the pipeline's begin counts as launch,
/// and after its end as cool-down, since they wait for the others.
void add_pipeline(plan::Timeline& job, const plan::Timeline& own, plan::Seconds began) {
  const int before = job.ranks;
  job.ranks += own.ranks;
  for (plan::Span span : own.spans) {
    span.rank += before;
    span.start += began;
    span.end += began;
    job.spans.push_back(std::move(span));
  }
  const plan::Seconds end = began + own.length;
  const auto add_idle = [&](int rank, plan::IdleCause cause, plan::Seconds from, plan::Seconds to) {
    if (from < to)
      job.idle.push_back({rank, cause, from, to});
  };
  auto idle = own.idle.begin();
  for (int rank = 0; rank < own.ranks; ++rank) {
    add_idle(rank + before, plan::IdleCause::Launch, {}, began);
    for (; idle != own.idle.end() && idle->rank == rank; ++idle)
      add_idle(rank + before, idle->cause, idle->start + began, idle->end + began);
    add_idle(rank + before, plan::IdleCause::CoolDown, end, job.length);
  }
}

plan::Timeline timeline_of(const std::vector<ExplainedPipeline>& pipelines,
                           const std::vector<TracedPipeline>& traced) {
  if (traced.size() == 1)
    return traced.front().timeline;
  plan::Timeline job;
  job.name = traced.front().timeline.name;
  for (const ExplainedPipeline& own : pipelines)
    job.length = std::max(job.length, plan::Seconds{own.began_s + own.iteration_s});
  for (std::size_t at = 0; at < traced.size(); ++at)
    add_pipeline(job, traced[at].timeline, plan::Seconds{pipelines[at].began_s});
  return job;
}

plan::Json json_of(const std::vector<plan::AxisIndex>& place) {
  plan::Json json = plan::Json::object();
  for (const plan::AxisIndex& own : place)
    json[own.axis] = own.index;
  return json;
}

plan::Json json_of(const ExplainedPipeline& pipeline) {
  return {{"axes", json_of(pipeline.place)},
          {"ranks", pipeline.ranks},
          {"files", pipeline.files},
          {"began_s", pipeline.began_s},
          {"iteration_s", pipeline.iteration_s},
          {"actions_s", pipeline.actions_s},
          {"busiest_rank", pipeline.ranks[busiest_rank(pipeline)]},
          {"busiest_s", pipeline.busy_s[busiest_rank(pipeline)]},
          {"mean_busy_s", mean_busy_s(pipeline)}};
}

}  // namespace

std::size_t busiest_rank(const ExplainedPipeline& pipeline) {
  return static_cast<std::size_t>(std::max_element(pipeline.busy_s.begin(), pipeline.busy_s.end()) -
                                  pipeline.busy_s.begin());
}

double mean_busy_s(const ExplainedPipeline& pipeline) {
  return std::accumulate(pipeline.busy_s.begin(), pipeline.busy_s.end(), 0.0) /
         static_cast<double>(pipeline.busy_s.size());
}

std::string place_of_rank(const ExplainedPipeline& pipeline, std::size_t rank) {
  return fmt::format("pipe {}, {}", rank, to_string(pipeline.place));
}

JobExplanation explain_traces(const std::vector<std::filesystem::path>& files,
                              const TraceChoice& choice, std::vector<std::string>& problems,
                              const plan::ProgressCallback& continues) {
  std::optional<plan::Topology> axes;
  if (!choice.axes.empty())
    axes = axes_of(choice.axes);
  std::vector<TracedRank> ranks;
  const auto ask = [&] {
    if (continues && !continues(ranks.size(), files.size() + 1))
      throw plan::Stopped{};
  };
  for (const std::filesystem::path& file : files) {
    ask();
    for (const PipelineEvents& events : read_ranks(file, problems, ask))
      ranks.push_back(traced_rank(events));
  }
  const auto layout = pipelines_of(ranks, axes);
  std::vector<const TracedRank*> all;
  for (const JobPipeline& own : layout)
    all.insert(all.end(), own.ranks.begin(), own.ranks.end());
  const int step = step_to_explain(all, choice.step);

  JobExplanation job;
  std::vector<TracedPipeline> traced;
  for (const JobPipeline& own : layout) {
    ask();
    traced.push_back(traced_pipeline(own.ranks, step));
    job.pipelines.push_back(figures_of(own, traced.back()));
    if (job.pipelines.back().actions_s > job.pipelines[job.slowest].actions_s)
      job.slowest = job.pipelines.size() - 1;
  }
  set_begins(job.pipelines, traced);
  job.timeline = timeline_of(job.pipelines, traced);
  job.explanation = explanation_of(std::move(traced[job.slowest]), ask);
  return job;
}

plan::Json to_json(const JobExplanation& job) {
  plan::Json json = to_json(job.explanation);
  json["pipelines"] = plan::Json::array();
  for (const ExplainedPipeline& own : job.pipelines)
    json["pipelines"].push_back(json_of(own));
  json["slowest"] = job.slowest;
  const auto& numbers = job.pipelines[job.slowest].ranks;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank)
    json["ranks"][rank]["rank"] = numbers[rank];
  return json;
}

void write_explanation(const std::filesystem::path& folder, const JobExplanation& job) {
  std::filesystem::create_directories(folder);
  write_timeline(folder / "timeline.pwt", job.timeline);
  write_timeline(folder / "timeline.json", job.timeline);
  const TraceExplanation& slowest = job.explanation;
  plan::write_file(folder / "schedule.csv", plan::to_csv(slowest.pipeline.schedule));
  plan::write_file(folder / "scenario.json", to_json(slowest.costs.scenario).dump(2) + "\n");
  plan::write_file(folder / "costs.json", to_json(slowest.costs.costs).dump(1) + "\n");
}

}  // namespace pipewright::trace
