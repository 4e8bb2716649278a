// Any text is either refused in words or gives a schedule that all else can rely on. With Clang,
// -fsanitize=fuzzer drives this function; without, driver.cpp does.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "pipewright/plan/deadlock.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lower.hpp"

namespace {

using namespace pipewright::plan;

void demand(bool holds, const char* what) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void try_compute_only(std::string_view text) {
  try {
    const Schedule schedule = parse_csv(text, "fuzz");
    demand(parse_csv(to_csv(schedule), "again").ranks == schedule.ranks, "reads back as written");
    validate(schedule);
    const Program program = lower(schedule);
    validate(program);  // what is sound is never refused later
    demand(!find_deadlock(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) ||
               program.ranks.size() > 1,
           "one rank waits for nobody");
    merge_backwards(split_backwards(schedule));
  } catch (const InputError&) {
  }
}

void try_with_communication(std::string_view text) {
  try {
    const Program program = program_from_csv(text, "fuzz");
    const Program again = program_from_csv(to_csv(program), "again");
    demand(again == program, "a program reads back as written");
  } catch (const InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_compute_only(text);
  try_with_communication(text);
  return 0;
}
