#pragma once

// Writes drafts in the file formats of other programs.

#include <string>

#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::search {

/// Returns the text of the scenario file. Reading it gives the same scenario in any folder, because
/// the path of the data is made absolute.
std::string scenario_text(const Draft& draft);

/// Returns the draft with its plan's boundaries set explicitly, so that a run partitions the layers
/// as shown, whatever costs it measures.
Draft with_boundaries(Draft draft, const sim::ScenarioPlan& plan);

/// Returns the order of the plan's actions in torch's CSV format.
std::string schedule_csv(const sim::ScenarioPlan& plan);

/// Returns Megatron's --pipeline-model-parallel-layout. Throws InputError if Megatron cannot
/// express it: for layers that have no letter, or stages that Megatron places differently.
std::string layout_text(const Draft& draft, const sim::ScenarioPlan& plan);

}  // namespace pipewright::search
