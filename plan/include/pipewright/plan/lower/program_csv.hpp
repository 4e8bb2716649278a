#pragma once

// A Program as CSV in torch's format, in which communication is an action like any other.

#include <string>
#include <string_view>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Writes torch's CSV format with communication: one row per rank, cells separated by commas.
/// Loads, tied reductions and optimizer steps are left out, because the format has no names for
/// them.
std::string to_csv(const Program& program);
/// Reads that format and adds loads, optimizer steps and slots, for which the actions must be a
/// valid Schedule. `validate` must still prove that the Program can run. Throws MalformedFile
/// `name:row:column: …` with all errors, or InputError that says why the Schedule is not valid.
Program program_from_csv(std::string_view text, const std::string& name,
                         CommunicatorLayout communicators = CommunicatorLayout::Edge,
                         TransferMode transfers = TransferMode::Eager);

/// Reads it without these additions, for `with_transfers_of`.
Program transfers_from_csv(std::string_view text, const std::string& name);
/// Completes a Program that has only actions and transfers: transfers stay as they are, and
/// everything else is added as `lower` adds it. Existing reductions over copies are removed,
/// because those that the training needs come after the last weight gradient.
Program with_transfers_of(const Program& transfers, const LoweringOptions& options);

}  // namespace pipewright::plan
