#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

struct ConvertOptions {
  std::vector<std::string> files;
  bool json = false;
};

plan::EventTable read_inputs(const std::vector<std::string>& files,
                             std::vector<std::string>& problems) {
  if (files.size() == 1)
    return trace::read_timeline_file(files.front(), problems);
  return trace::read_chrome_traces({files.begin(), files.end()}, problems);
}

plan::Json summary_json(const plan::EventTable& table, const std::string& file,
                        const std::vector<std::string>& problems) {
  const plan::TimelineFacts facts = plan::facts_of(table);
  plan::Json json{{"file", file},
                  {"events", table.size()},
                  {"ranks", table.ranks},
                  {"length_s", table.length.value},
                  {"problems", problems}};
  if (const auto iteration = plan::iteration_of(table, facts))
    json["iteration_s"] = iteration->value;
  if (!facts.is_iteration)
    json["steps"] = facts.steps.size();
  return json;
}

/// Returns "6930 events of 2 ranks, 77.73 s, 32 steps, the median one of 2.213 s".
std::string summary_of(const plan::EventTable& table) {
  const plan::TimelineFacts facts = plan::facts_of(table);
  std::string words =
      fmt::format("{} event{} of {} rank{}, {}", table.size(), table.size() == 1 ? "" : "s",
                  table.ranks, table.ranks == 1 ? "" : "s", plan::time_text(table.length.value));
  if (const plan::MarkedStep* const step = facts.typical_step())
    words += facts.steps.size() == 1
                 ? fmt::format(", a step of {}", plan::time_text(step->length().value))
                 : fmt::format(", {} steps, the median one of {}", facts.steps.size(),
                               plan::time_text(step->length().value));
  return words;
}

int convert(const ConvertOptions& options) {
  if (options.files.size() < 2)
    throw plan::InputError("convert needs an input timeline and an output file");
  const std::vector<std::string> inputs(options.files.begin(), options.files.end() - 1);
  const std::string& output = options.files.back();
  std::vector<std::string> problems;
  const plan::EventTable table = read_inputs(inputs, problems);
  for (const std::string& problem : problems)
    say(problem);
  trace::write_timeline_file(output, table);
  if (options.json)
    fmt::print("{}\n", summary_json(table, output, problems).dump(2));
  else
    fmt::print("{}: {}\n", output, summary_of(table));
  return Done;
}

Command describe_convert(ConvertOptions& options) {
  return {
      .name = "convert",
      .summary = "Convert a timeline to another format, or merge the traces of a run",
      .options = {{.names = "files",
                   .target = &options.files,
                   .help = "A timeline (.pwt, a trace of pipewright, a Chrome trace, also .gz), or "
                           "one Chrome trace per rank; then the file to write: .pwt (native), "
                           ".json or .json.gz (Chrome trace), .csv or .svg",
                   .value = "FILE",
                   .required = true},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples = "Example: pipewright convert rank0.json.gz rank1.json.gz run.pwt"};
}

}  // namespace

Command convert_command() { return make_command(describe_convert, convert); }

}  // namespace pipewright::cli
