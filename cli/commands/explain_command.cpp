#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/loop/explain/explanation.hpp"
#include "pipewright/loop/timeline_file.hpp"
#include "print/console.hpp"
#include "print/explanation_table.hpp"

namespace pipewright::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> files;
  std::optional<int> step;
  std::string output;
  std::string timeline;
  bool json = false;
};

int explain(const ExplainOptions& options) {
  if (!options.timeline.empty())
    loop::require_timeline_suffix(options.timeline);
  std::vector<std::string> problems;
  const auto explanation = [&] {
    try {
      return loop::explain_traces({options.files.begin(), options.files.end()}, options.step,
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
    loop::write_timeline_file(options.timeline, plan::table_of(explanation.pipeline.timeline));
  if (!options.output.empty())
    loop::write_explanation(options.output, explanation);
  if (options.json)
    fmt::print("{}\n", to_json(explanation).dump(2));
  else
    fmt::print("{}", explanation_table(explanation));
  return Done;
}

Command describe_explain(ExplainOptions& options) {
  return {
      .name = "explain",
      .summary = "Where the time of a traced PyTorch pipeline goes, and what would save some",
      .options =
          {{.names = "traces",
            .target = &options.files,
            .help = "Traces of torch's profiler of one run, one for each rank, also .gz",
            .value = "FILE",
            .required = true},
           {.names = "--step",
            .target = &options.step,
            .help = "The step to explain: N of \"ProfilerStep#N\", or counted from 0 where there "
                    "is none; without it the last whole one",
            .value = "N",
            .numbers = Numbers::NotNegative},
           {.names = "-o,--output",
            .target = &options.output,
            .help = "Write timeline.pwt, timeline.json, schedule.csv, scenario.json and costs.json "
                    "into this folder",
            .value = "FOLDER"},
           {.names = "--timeline",
            .target = &options.timeline,
            .help = "Write the step on one clock: .pwt (native), .json or .json.gz (Chrome trace), "
                    ".csv or .svg",
            .value = "FILE"},
           {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples = "Example: pipewright explain rank0.json.gz rank1.json.gz -o explained"};
}

}  // namespace

Command explain_command() { return make_command(describe_explain, explain); }

}  // namespace pipewright::cli
