#pragma once

#include <string>
#include <string_view>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// torch's dialect with communication: one row a rank, cells separated by commas. Loads, tied
/// reductions and optimizer steps are left out, which it has no words for.
std::string to_csv(const Program& program);
/// Reads that dialect; loads, optimizer steps and slots are added, and it runs under the given
/// communicators and transfers. Throws MalformedFile `name:row:column: …` with all errors, or
/// InputError that says what makes the Program unsound.
Program program_from_csv(std::string_view text, const std::string& name,
                         CommunicatorLayout communicators = CommunicatorLayout::Edge,
                         TransferMode transfers = TransferMode::Eager);

}  // namespace pipewright::plan
