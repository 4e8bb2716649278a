#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

plan::Timeline timeline_of(const Structure& structure, const Times& times) {
  const plan::Dependencies& events = structure.events();
  plan::Timeline timeline{.name = "predicted",
                          .ranks = static_cast<int>(structure.program().ranks.size()),
                          .length = {times.iteration},
                          .spans = {},
                          .memory = {}};
  timeline.spans.reserve(times.events.size());
  for (int event = 0; event < events.size(); ++event) {
    const plan::Instruction& instruction = *events[event].instruction;
    timeline.spans.push_back({events[event].rank,
                              plan::row_of(instruction.kind),
                              plan::to_string(instruction),
                              {times[event].start},
                              {times[event].end}});
  }
  return timeline;
}

}  // namespace pipewright::sim
