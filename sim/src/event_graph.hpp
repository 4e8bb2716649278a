#pragma once

// A Program as a graph of events, one an instruction, whose edges say what waits for what.

#include <vector>

#include "pipewright/plan/program.hpp"

namespace pipewright::sim {

/// What a successor waits for: the data (a transfer has arrived), or the queue and the link (a
/// transfer no longer holds them). For compute both are the same instant.
enum class Until { Done, Released };

struct Edge {
  int event = 0;  // that waits
  Until until = Until::Done;
};

struct Event {
  const plan::Instruction* instruction = nullptr;
  int rank = 0;
  int partner = -1;  // of a receive: its send
  std::vector<Edge> successors{};
  std::vector<int> predecessors{};
};

/// Events in the order of ranks and instructions.
std::vector<Event> event_graph(const plan::Program& program);

}  // namespace pipewright::sim
