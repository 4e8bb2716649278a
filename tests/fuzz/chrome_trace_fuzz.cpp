// Chrome traces of other programs: a table that was read from any text can be written as a native
// file.

#include <string>
#include <string_view>

#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/temp_folder.hpp"

namespace chrome_trace_fuzz {

using namespace pipewright;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;

void try_text(std::string_view text) {
  static const test::TempFolder folder;
  const auto file = folder.write("t.json", std::string(text));
  std::vector<std::string> problems;
  const auto table = accepted([&] { return trace::read_chrome_trace(file, problems); });
  demand(problems.size() < 10'000, "the list of problems is bounded");
  for (const std::string& problem : problems)
    demand(!problem.empty(), "a problem has a message");
  may_be_refused([&] { trace::read_timeline_file(file, problems); });
  if (!table)
    return;
  demand(table->size() <= 2 * text.size(), "there are no more events than characters");
  plan::write_event_file(folder.path() / "t.pwt", *table);
  const auto again = plan::read_event_file(folder.path() / "t.pwt");
  demand(again.tracks == table->tracks && again.size() == table->size(), "reads back as written");
  trace::write_timeline_file(folder.path() / "again.json", *table);
  demand(trace::read_timeline_file(folder.path() / "again.json", problems).ranks > 0 ||
             table->size() == 0,
         "a written trace reads back");
}

const pipewright::fuzz::Reader reader("chrome_trace", try_text);

}  // namespace chrome_trace_fuzz
