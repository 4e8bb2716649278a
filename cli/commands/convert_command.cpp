#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/loop/chrome/chrome_trace.hpp"
#include "pipewright/loop/timeline_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"
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
    return loop::read_timeline_file(files.front(), problems);
  return loop::read_chrome_traces({files.begin(), files.end()}, problems);
}

int convert(const ConvertOptions& options) {
  if (options.files.size() < 2)
    throw plan::InputError("convert needs a timeline and the file that it should become");
  const std::vector<std::string> inputs(options.files.begin(), options.files.end() - 1);
  const std::string& output = options.files.back();
  std::vector<std::string> problems;
  const plan::EventTable table = read_inputs(inputs, problems);
  for (const std::string& problem : problems)
    say(problem);
  loop::write_timeline_file(output, table);
  if (options.json)
    fmt::print("{}\n", plan::Json{{"file", output},
                                  {"events", table.size()},
                                  {"ranks", table.ranks},
                                  {"length_s", table.length.value},
                                  {"problems", problems}}
                           .dump(2));
  else
    fmt::print("{}: {} event{} of {} rank{}, {:.3f} ms\n", output, table.size(),
               table.size() == 1 ? "" : "s", table.ranks, table.ranks == 1 ? "" : "s",
               table.length.value * 1e3);
  return Done;
}

Command describe_convert(ConvertOptions& options) {
  return {
      .name = "convert",
      .summary = "Turn a timeline into another format, or the traces of a run into one",
      .options = {{.names = "files",
                   .target = &options.files,
                   .help = "A timeline (.pwt, a trace of ours, a Chrome trace, also .gz), or one "
                           "Chrome trace per rank; then the file to write: .pwt (native), .json or "
                           ".json.gz (Chrome trace), .csv or .svg",
                   .value = "FILE",
                   .required = true},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples = "Example: pipewright convert rank0.json.gz rank1.json.gz run.pwt"};
}

}  // namespace

Command convert_command() { return make_command(describe_convert, convert); }

}  // namespace pipewright::cli
