#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop/compare/comparison.hpp"
#include "pipewright/loop/compare/kind_comparison.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

struct CompareOptions {
  std::string predicted;
  std::string measured;
  std::string actions;
  bool json = false;
};

constexpr std::size_t most_actions = 5;

plan::Timeline read_timeline(const std::string& file) {
  std::vector<std::string> problems;
  plan::Timeline timeline = trace::read_timeline(file, problems);
  for (const std::string& problem : problems)
    say(problem);
  return timeline;
}

int compare(const CompareOptions& options) {
  const auto predicted = read_timeline(options.predicted);
  const auto measured = read_timeline(options.measured);
  if (predicted.ranks != measured.ranks)
    throw plan::InputError(
        fmt::format("{} has {} ranks, but {} has {}: they are not from the same plan",
                    options.predicted, predicted.ranks, options.measured, measured.ranks));
  const loop::Comparison found = loop::compare(predicted, measured);
  if (!options.actions.empty())
    plan::write_file(options.actions, loop::actions_csv(found.actions));
  if (options.json)
    fmt::print("{}\n", to_json(found).dump(2));
  else
    fmt::print("{}\n{}\n{}{}", loop::comparison_table(found.predicted, found.measured),
               loop::kind_table(found.predicted_kinds, found.measured_kinds),
               loop::idle_line(found.idle), loop::actions_table(found.actions, most_actions));
  return Done;
}

Command describe(CompareOptions& options) {
  return {
      .name = "compare",
      .summary = "Show the errors of a prediction: overall, by rank, by kind and by action",
      .options = {{.names = "predicted",
                   .target = &options.predicted,
                   .help = "A timeline: .pwt, a trace of pipewright, or a Chrome trace with a "
                           "pipeline's actions",
                   .value = "FILE",
                   .required = true},
                  {.names = "measured",
                   .target = &options.measured,
                   .help = "A timeline: .pwt, a trace of pipewright, or a Chrome trace with a "
                           "pipeline's actions",
                   .value = "FILE",
                   .required = true},
                  {.names = "--actions",
                   .target = &options.actions,
                   .help =
                       "Write each action with its predicted and measured start and time as CSV",
                   .value = "FILE"},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Example: pipewright compare runs/x/predicted.trace.json "
          "runs/x/measured.trace.json"};
}

}  // namespace

Command compare_command() { return make_command(describe, compare); }

}  // namespace pipewright::cli
