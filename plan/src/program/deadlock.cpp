#include "pipewright/plan/program/deadlock.hpp"

#include <map>

#include "schedules/waiting.hpp"

namespace pipewright::plan {
namespace {

/// Runs every event that can run, and returns which could not.
std::vector<char> stuck_events(const Dependencies& graph) {
  LargeVector<int> pending = graph.predecessor_counts();
  std::vector<int> ready;
  for (int event = 0; event < graph.size(); ++event)
    if (pending[static_cast<std::size_t>(event)] == 0)
      ready.push_back(event);
  std::size_t done = 0;
  while (!ready.empty()) {
    const int event = ready.back();
    ready.pop_back();
    ++done;
    for (const auto* edge = graph.begin(event); edge != graph.end(event); ++edge)
      if (--pending[static_cast<std::size_t>(edge->event)] == 0)
        ready.push_back(edge->event);
  }
  if (done == pending.size())
    return {};
  std::vector<char> stuck(pending.size());
  for (std::size_t i = 0; i < pending.size(); ++i)
    stuck[i] = pending[i] > 0 ? 1 : 0;
  return stuck;
}

/// Returns, for each in-order list, the first event that could not run and the event it waits for,
/// which is further back in some list.
std::vector<Waiting> waits(const Dependencies& graph, const std::vector<char>& stuck) {
  std::map<int, int> front;  // list → its first stuck event
  for (int event = 0; event < graph.size(); ++event)
    if (stuck[static_cast<std::size_t>(event)] != 0)
      front.try_emplace(graph[event].place, event);

  std::vector<Waiting> waiting;
  for (const auto& [front_place, event] : front) {
    const int place = front_place;  // Clang's lambdas cannot capture a structured binding
    const auto& own = graph[event];
    graph.for_each_predecessor(event, [&](int predecessor, Until) {
      if (stuck[static_cast<std::size_t>(predecessor)] == 0)
        return;
      // A send depends on what its receive waits for; report that it waits for its receive.
      const bool for_other_end = graph[predecessor].rank != own.rank && own.partner >= 0;
      const int needed = for_other_end ? own.partner : predecessor;
      waiting.push_back({.place = place,
                         .rank = own.rank,
                         .action = to_string(*own.instruction),
                         .needs = to_string(*graph[needed].instruction),
                         .behind = graph[predecessor].place});
    });
  }
  return waiting;
}

}  // namespace

std::optional<std::string> find_deadlock(const Dependencies& dependencies) {
  const auto stuck = stuck_events(dependencies);
  if (stuck.empty())
    return {};
  return in_words(shortest_cycle(waits(dependencies, stuck)));
}

std::optional<std::string> find_deadlock(Program program, CommunicatorLayout communicators,
                                         TransferMode transfers) {
  program.communicators = communicators;
  program.transfers = transfers;
  return find_deadlock(Dependencies(program));
}

}  // namespace pipewright::plan
