#pragma once

// On which kinds of nodes the ranks of a scenario's pipelines are, in words.

#include <string>
#include <vector>

#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// By rank of a pipeline: the name of the devices that stand for it, "H100", or their names,
/// "H100+A100".
std::vector<std::string> kinds_of_ranks(const Scenario& scenario);

/// The same in runs of ranks, "H100 0-5, A100 6-7"; empty where all nodes are alike.
std::string kinds_words(const Scenario& scenario);

}  // namespace pipewright::plan
