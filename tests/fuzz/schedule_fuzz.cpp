// Schedules and Programs in torch's CSV format. Any text is either rejected with a message or gives
// a value that all other code can rely on.

#include <string_view>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/generators/schedule_file.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace schedule_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_compute_only(std::string_view text) {
  const auto schedule = accepted([&] { return parse_csv(text, "fuzz"); });
  if (!schedule)
    return;
  demand(parse_csv(to_csv(*schedule), "again").ranks == schedule->ranks, "reads back as written");
  if (!accepted([&] { return validate(*schedule), true; }))
    return;
  const Program program = lower(*schedule);  // a valid schedule is never rejected later
  validate(program);
  demand(!find_deadlock(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) ||
             program.ranks.size() > 1,
         "a single rank cannot deadlock");
  merge_backwards(split_backwards(*schedule));
}

void try_with_communication(std::string_view text) {
  const auto program = accepted([&] { return program_from_csv(text, "fuzz"); });
  if (!program)
    return;
  demand(program_from_csv(to_csv(*program), "again") == *program, "reads back as written");
  if (accepted([&] { return validate(*program), true; }))
    demand(!find_deadlock(Dependencies(*program)), "a valid program can run");
}

/// An accepted schedule is valid, and a valid schedule can run.
void try_as_own(std::string_view text) {
  const auto own = accepted([&] { return schedule_from_text(std::string(text), "fuzz"); });
  if (!own)
    return;
  ScheduleRequest request;
  request.name = own->name;
  request.own = own->own;
  request.ranks = own->own->only->ranks;
  request.microbatches = own->own->only->microbatches;
  const auto program = accepted(
      [&] { return lower(request, make_training_schedule(request), lowering_of(request)); });
  demand(program || own->own->program, "a valid order can be lowered");
  if (program)
    validate(*program, CommunicatorLayout::Edge, TransferMode::Eager);
}

const pipewright::fuzz::Reader reader("schedule", [](std::string_view text) {
  try_as_own(text);
  try_compute_only(text);
  try_with_communication(text);
});

}  // namespace schedule_fuzz
