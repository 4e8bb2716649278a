#pragma once

// Text about which kinds of nodes the ranks of a scenario's pipelines use.

#include <string>
#include <vector>

#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// Returns, for each rank of a pipeline, the name of its devices over all replicas, such as "H100",
/// or their names if they differ, "H100+A100".
std::vector<std::string> kinds_of_ranks(const Scenario& scenario);

/// Returns the names by runs of ranks, "H100 0-5, A100 6-7"; empty if all nodes have the same kind.
std::string kinds_words(const Scenario& scenario);

}  // namespace pipewright::plan
