#include "pipewright/trace/chrome/chrome_trace.hpp"

#include <fmt/format.h>

#include "chrome_file.hpp"
#include "chrome_table.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
plan::EventTable read_chrome_traces(const std::vector<std::filesystem::path>& files,
                                    std::vector<std::string>& problems) {
  ChromeRecords records(problems);
  ChromeEventParser parser;
  for (const std::filesystem::path& file : files) {
    records.begin_file(file.string());
    parser.set_wants_span_arguments(records.looks_for_steps());
    read_chrome_file(file, records.files.back(), records.problems, parser,
                     [&](const ChromeEvent& event) {
                       records.take(event);
                       parser.set_wants_span_arguments(records.looks_for_steps());
                     });
    records.end_file();
  }
  plan::EventTable table = table_of(records);
  if (table.ranks > 0)
    return table;
  std::string names;
  for (const ChromeFile& file : records.files)
    names += (names.empty() ? "" : ", ") + file.name;
  throw plan::MalformedFile(fmt::format("{}: no events that can be shown{}", names,
                                        problems.empty() ? "" : ": " + problems.front()));
}

plan::EventTable read_chrome_trace(const std::filesystem::path& file,
                                   std::vector<std::string>& problems) {
  plan::EventTable table = read_chrome_traces({file}, problems);
  table.name = file.filename().string();
  return table;
}

}  // namespace pipewright::trace
