#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/trace/explain/job_explanation.hpp"
#include "pipewright/trace/files/straggler_files.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "pipewright/trace/hang/explain_hang.hpp"
#include "print/console.hpp"
#include "print/draws_table.hpp"
#include "print/explanation_table.hpp"
#include "print/straggler_table.hpp"

namespace pipewright::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> files;
  trace::TraceChoice choice;
  std::vector<int> steps;
  std::optional<int> draws;
  std::string output;
  std::string timeline;
  bool hang = false;
  std::string schedule;
  bool json = false;
};

/// Explains a hang. The exit code is negative if the job hangs.
int explain_hang(const ExplainOptions& options) {
  const auto diagnosis =
      trace::explain_hang({options.files.begin(), options.files.end()}, options.schedule);
  if (options.json)
    fmt::print("{}\n", to_json(diagnosis).dump(2));
  else
    fmt::print("{}", in_words(diagnosis));
  return diagnosis.kind == trace::HangKind::None ? Done : NegativeAnswer;
}

/// Returns true if the file is the trace of a whole job with all its workers; it contains the job's
/// axes.
bool is_whole_job(const ExplainOptions& options) {
  const auto is_job = [](const std::string& file) { return trace::is_job_trace(file); };
  if (std::none_of(options.files.begin(), options.files.end(), is_job))
    return false;
  if (options.files.size() > 1)
    throw plan::InputError(
        fmt::format("{} files, but one of them is the trace of a whole job with all its workers: "
                    "give only that file",
                    options.files.size()));
  if (!options.choice.axes.empty())
    throw plan::InputError(fmt::format(
        "{}: the trace of a whole job contains its axes; --axes is for traces of single ranks",
        options.files.front()));
  return true;
}

int explain_job(const ExplainOptions& options) {
  std::vector<std::string> problems;
  auto report = trace::explain_stragglers(options.files.front(), problems, options.steps);
  if (options.draws)
    report.days = trace::sample_steps(report.steps, {.count = *options.draws});
  for (const std::string& problem : problems)
    say(problem);
  if (!options.timeline.empty() || !options.output.empty()) {
    const auto timeline = trace::job_timeline(report.steps, report.workers, options.choice.step);
    if (!options.timeline.empty())
      trace::write_timeline_file(options.timeline, timeline);
    if (!options.output.empty())
      trace::write_stragglers(options.output, report, timeline);
  }
  if (options.json)
    fmt::print("{}\n", document_of(report).dump(2));
  else
    fmt::print("{}{}", straggler_table(report), report.days ? draws_table(*report.days) : "");
  return Done;
}

int explain(const ExplainOptions& options) {
  if (options.hang)
    return explain_hang(options);
  if (!options.timeline.empty())
    trace::require_timeline_suffix(options.timeline);
  if (is_whole_job(options))
    return explain_job(options);
  if (options.draws)
    throw plan::InputError(
        "--draws needs the trace of a whole job; for recorded steps use `pipewright simulate "
        "--draws`");
  if (!options.steps.empty())
    throw plan::InputError(
        "--steps needs the trace of a whole job; --step is for traces of single ranks");
  std::vector<std::string> problems;
  const auto job = [&] {
    try {
      return trace::explain_traces({options.files.begin(), options.files.end()}, options.choice,
                                   problems);
    } catch (...) {
      for (const std::string& problem : problems)
        say(problem);
      throw;
    }
  }();
  for (const std::string& problem : problems)
    say(problem);
  if (!options.timeline.empty())
    trace::write_timeline_file(options.timeline, plan::table_of(job.timeline));
  if (!options.output.empty())
    trace::write_explanation(options.output, job);
  if (options.json)
    fmt::print("{}\n", to_json(job).dump(2));
  else
    fmt::print("{}", explanation_table(job));
  return Done;
}

Command describe_explain(ExplainOptions& options) {
  return {
      .name = "explain",
      .summary =
          "Show where the time of a traced PyTorch pipeline or of a whole job is spent and which "
          "changes would save some; or why a PyTorch job hangs",
      .options =
          {{.names = "traces",
            .target = &options.files,
            .help =
                "Traces of torch's profiler for one run, one per rank, also .gz; or the output of "
                "nsys export --type sqlite; or one trace of a whole job with all its workers; with "
                "--hang the dumps of FlightRecorder (nccl_trace_rank_0, …) or a folder of them",
            .value = "FILE",
            .required = true},
           {.names = "--hang",
            .target = &options.hang,
            .help =
                "Show which rank of a hanging job diverged first, and which ranks wait for which",
            .excludes = {"--axes", "--step", "--steps", "--draws", "--output", "--timeline"}},
           {.names = "--schedule",
            .target = &options.schedule,
            .help = "The schedule (CSV) of the hanging job: names stage and microbatch, and the "
                    "rank that left its order",
            .value = "FILE",
            .needs = {"--hang"}},
           {.names = "--axes",
            .target = &options.choice.axes,
            .help = "The order of the ranks of a job with several pipelines, the last axis "
                    "fastest: \"pipe\", \"data\", \"context\" and \"tensor\" with their lengths; "
                    "not needed if the traces name their groups",
            .value = "AXES"},
           {.names = "--step",
            .target = &options.choice.step,
            .help = "The step to explain: N of \"ProfilerStep#N\", or counted from 0 if there is "
                    "none; default: the last complete step. For a whole job's trace: the step of "
                    "the timeline; default: all steps",
            .value = "N",
            .numbers = Numbers::NotNegative},
           {.names = "--steps",
            .target = &options.steps,
            .help = "For a whole job's trace: use only these steps; default: all complete steps",
            .value = "N,N,…",
            .separator = ',',
            .repeated = true},
           {.names = "--draws",
            .target = &options.draws,
            .help = "For a whole job's trace: sample this many steps from the recorded ones, and "
                    "show percentiles with confidence intervals",
            .value = "COUNT",
            .numbers = Numbers::Positive},
           {.names = "-o,--output",
            .target = &options.output,
            .help = "Write timeline.pwt and timeline.json of all ranks, and schedule.csv, "
                    "scenario.json and costs.json of the slowest pipeline to this folder; for a "
                    "whole job schedule.csv, steps.csv and stragglers.json",
            .value = "FOLDER"},
           {.names = "--timeline",
            .target = &options.timeline,
            .help = "Write the step on a common clock: .pwt (native), .json or .json.gz (Chrome "
                    "trace), .csv or .svg",
            .value = "FILE"},
           {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Examples:\n"
          "  pipewright explain rank0.json.gz rank1.json.gz -o explained\n"
          "  pipewright explain timeline-job.json.gz --json\n"
          "  pipewright explain traces/*.json.gz --axes pipe=4,data=2,tensor=2\n"
          "  pipewright explain --hang /tmp/nccl_trace_rank_* --schedule plan.csv"};
}

}  // namespace

Command explain_command() { return make_command(describe_explain, explain); }

}  // namespace pipewright::cli
