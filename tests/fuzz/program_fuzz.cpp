// Programs: an accepted Program is validated or rejected with a message, and the dependency graph
// of a valid one can be built.

#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "reader.hpp"

namespace program_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::read_back;

void try_text(std::string_view text) {
  const auto program = read_back(text, program_from_json);
  if (!program || !accepted([&] { return validate(*program), true; }))
    return;
  const Dependencies dependencies(*program);
  std::size_t instructions = 0;
  for (const auto& rank : program->ranks)
    instructions += rank.size();
  demand(dependencies.size() == static_cast<int>(instructions),
         "there is an event for each instruction");
  demand(!find_deadlock(dependencies), "a valid program can run");
  for (int event = 0; event < dependencies.size(); ++event)
    dependencies.for_each_predecessor(event, [&](int before, Until) {
      demand(0 <= before && before < dependencies.size(), "it waits for events that exist");
    });
  // Other communicators may deadlock, but the check itself must end.
  find_deadlock(*program, CommunicatorLayout::Rank, TransferMode::Rendezvous);
}

const pipewright::fuzz::Reader reader("program", try_text);

}  // namespace program_fuzz
