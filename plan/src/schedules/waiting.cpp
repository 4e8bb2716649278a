#include "waiting.hpp"

#include <fmt/format.h>

#include <set>

namespace pipewright::plan {
namespace {

/// Returns the shortest chain of entries from `start` back to it, by breadth-first search; empty if
/// there is none.
std::vector<Waiting> shortest_from(const std::vector<Waiting>& stuck, int start) {
  std::vector<std::size_t> reached;  // entries, in the order in which they were found
  std::vector<std::size_t> before;   // by entry: the index in `reached` that led to it
  std::set<int> seen;                // lists
  const auto enter = [&](int place, std::size_t from) {
    for (std::size_t entry = 0; entry < stuck.size(); ++entry)
      if (stuck[entry].place == place) {
        reached.push_back(entry);
        before.push_back(from);
      }
  };
  constexpr auto none = static_cast<std::size_t>(-1);
  enter(start, none);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const int next = stuck[reached[i]].behind;
    if (next == start) {
      std::vector<Waiting> chain;
      for (std::size_t at = i; at != none; at = before[at])
        chain.insert(chain.begin(), stuck[reached[at]]);
      return chain;
    }
    if (seen.insert(next).second)
      enter(next, i);
  }
  return {};
}

}  // namespace

std::vector<Waiting> shortest_cycle(const std::vector<Waiting>& stuck) {
  std::vector<Waiting> shortest;
  for (const Waiting& first : stuck) {
    auto chain = shortest_from(stuck, first.place);
    if (!chain.empty() && (shortest.empty() || chain.size() < shortest.size()))
      shortest = std::move(chain);
  }
  return shortest;
}

std::string in_words(const std::vector<Waiting>& cycle) {
  std::string text = "deadlock: ";
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Waiting& here = cycle[i];
    const Waiting& next = cycle[(i + 1) % cycle.size()];
    text += fmt::format("{}rank {} at {} waits for {}", i == 0 ? "" : "; ", here.rank, here.action,
                        here.needs);
    if (here.needs != next.action)
      text += fmt::format(", which rank {} runs after {}", next.rank, next.action);
  }
  return text;
}

}  // namespace pipewright::plan
