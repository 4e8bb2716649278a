#pragma once

// Every schedule under every way to communicate that does not deadlock, ready to be timed.

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/structure/structure.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"

namespace pipewright::test {

/// Calls `visit` with each; says how many there were.
template <class Visit>
int for_each_structure(const Visit& visit) {
  int visited = 0;
  for (const std::string& name : plan::schedule_names())
    for (const auto& [ranks, microbatches] : {std::pair{2, 4}, {4, 8}, {4, 12}})
      for (const plan::LoweringOptions& options : all_ways_to_communicate())
        try {
          const sim::Structure structure(lower(make(name, ranks, microbatches), options));
          CAPTURE(name, ranks, microbatches, to_string(options.communicators),
                  to_string(options.transfers), options.blocking, options.replicas);
          visit(structure);
          ++visited;
        } catch (const plan::InputError&) {
        } catch (const plan::Infeasible&) {
        }
  return visited;
}

}  // namespace pipewright::test
