#pragma once

// A Program as a CSV file in torch's dialect, where communication is an action like the others.

#include <string>
#include <string_view>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// torch's dialect with communication: one row per rank, cells separated by commas. Loads, tied
/// reductions and optimizer steps are left out, which it has no words for.
std::string to_csv(const Program& program);
/// Reads that dialect; loads, optimizer steps and slots are added, for which its actions must be a
/// sound Schedule. That the Program can run is for `validate` to prove. Throws MalformedFile
/// `name:row:column: …` with all errors, or InputError that says why the Schedule is not sound.
Program program_from_csv(std::string_view text, const std::string& name,
                         CommunicatorLayout communicators = CommunicatorLayout::Edge,
                         TransferMode transfers = TransferMode::Eager);

/// The same without what is added, for `with_transfers_of`.
Program transfers_from_csv(std::string_view text, const std::string& name);
/// Makes a whole Program of one that has actions and transfers, and nothing else: transfers stay as
/// they are, and the rest is added as `lower` adds it. Its sums over copies are left out, since
/// those that the training needs stand behind the last weight gradient.
Program with_transfers_of(const Program& transfers, const LoweringOptions& options);

}  // namespace pipewright::plan
