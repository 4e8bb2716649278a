#pragma once

// Every schedule under every way to communicate that does not deadlock, ready to be timed.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/structure/structure.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "support/combinations.hpp"

namespace pipewright::test {

/// Returns a way to communicate as values for a PairCover, after a schedule's name and sizes.
inline std::vector<std::string> values_of(const std::string& name, int ranks, int microbatches,
                                          const plan::LoweringOptions& options) {
  return {name,
          fmt::format("{} x {}", ranks, microbatches),
          to_string(options.communicators),
          to_string(options.transfers),
          options.blocking ? "blocking" : "",
          fmt::format("{} replicas, zero {}", options.replicas, options.zero)};
}

enum class Coverage { All, Pairs };

/// Calls `visit` with each structure, or with as many as cover every pair of values. Returns their
/// number.
template <class Visit>
int for_each_structure(const Visit& visit, Coverage coverage = Coverage::All) {
  int visited = 0;
  PairCover cover;
  for (const std::string& name : plan::schedule_names())
    for (const auto& [ranks, microbatches] : {std::pair{2, 4}, {4, 8}, {4, 12}})
      for (const plan::LoweringOptions& options : all_ways_to_communicate())
        try {
          const auto values = values_of(name, ranks, microbatches, options);
          if (coverage == Coverage::Pairs && !cover.needs(values))
            continue;
          const sim::Structure structure(lower(make(name, ranks, microbatches), options));
          CAPTURE(name, ranks, microbatches, to_string(options.communicators),
                  to_string(options.transfers), options.blocking, options.replicas);
          visit(structure);
          cover.add(values);
          ++visited;
        } catch (const plan::InputError&) {
        } catch (const plan::Infeasible&) {
        }
  return visited;
}

template <class Visit>
int for_each_paired_structure(const Visit& visit) {
  return for_each_structure(visit, Coverage::Pairs);
}

}  // namespace pipewright::test
