// Native timeline files: an accepted file can be iterated without further checks and reads back as
// written. The checksums are corrected first, because mutations would never hit the right ones.

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/event_file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace event_file_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

constexpr int most_to_write = 100;  // ranks

void try_bytes(const std::string& bytes) {
  static const pipewright::test::TempFolder folder;
  const auto file = folder.write("t.pwt", bytes);
  const auto table = accepted([&] { return read_event_file(file); });
  if (!table)
    return;
  std::uint64_t events = 0;
  for (const EventTrack& track : table->tracks) {
    demand(!rank_name(*table, track.rank).empty() || !table->rank_names.empty(),
           "a rank has a name");
    for (std::uint64_t event = track.begin; event < track.end; ++event) {
      demand(table->end[event] >= table->start[event], "time does not run backwards");
      demand(table->name_at(event).size() <= bytes.size(), "an event's name comes from the file");
      ++events;
    }
  }
  demand(events == table->size(), "every event is on one track");
  const Timeline timeline = timeline_of(*table);
  write_event_file(folder.path() / "again.pwt", *table);
  demand(timeline_of(read_event_file(folder.path() / "again.pwt")) == timeline,
         "reads back as written");
  if (table->ranks <= most_to_write)
    demand(timeline_from_trace(JsonDocument::parse(to_trace(timeline), "trace")).spans ==
               timeline.spans,
           "reads back as a trace");
}

void try_text(std::string_view text) {
  std::string bytes(text);
  try_bytes(bytes);
  if (bytes.size() >= pipewright::test::event_file_front) {
    pipewright::test::put_number(bytes, 16, std::uint64_t{bytes.size()});
    try_bytes(pipewright::test::with_right_checksums(bytes));
  }
}

const pipewright::fuzz::Reader reader("event_file", try_text);

}  // namespace event_file_fuzz
