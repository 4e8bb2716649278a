// Schedules and programs in torch's dialect of CSV. Any text is either refused in words or gives a
// value that all else can rely on. With Clang, -fsanitize=fuzzer drives this function; without,
// driver.cpp does.

#include <cstdint>
#include <string_view>

#include "pipewright/plan/deadlock.hpp"
#include "pipewright/plan/lower.hpp"
#include "promise.hpp"

namespace {

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
  const Program program = lower(*schedule);  // what is sound is never refused later
  validate(program);
  demand(!find_deadlock(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) ||
             program.ranks.size() > 1,
         "one rank waits for nobody");
  merge_backwards(split_backwards(*schedule));
}

void try_with_communication(std::string_view text) {
  const auto program = accepted([&] { return program_from_csv(text, "fuzz"); });
  if (program)
    demand(program_from_csv(to_csv(*program), "again") == *program, "reads back as written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_compute_only(text);
  try_with_communication(text);
  return 0;
}
