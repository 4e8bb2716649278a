#pragma once

// A draft as the files that others read.

#include <string>

#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::search {

/// The scenario file. Read again it gives the same scenario, wherever it lies: the path of the data
/// becomes absolute.
std::string scenario_text(const Draft& draft);

/// The draft with its plan's boundaries written down, so that a run cuts the layers where they were
/// seen, whatever it measures.
Draft with_boundaries(Draft draft, const sim::ScenarioPlan& plan);

/// The order of the plan's actions in torch's dialect.
std::string schedule_csv(const sim::ScenarioPlan& plan);

/// Megatron's --pipeline-model-parallel-layout. Throws InputError where Megatron has no such thing:
/// layers that it has no letter for, or stages that it places otherwise.
std::string layout_text(const Draft& draft, const sim::ScenarioPlan& plan);

}  // namespace pipewright::search
