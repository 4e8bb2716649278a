#pragma once

// The JSON Schema of program files, which editors use to check them.

#include <string>

namespace pipewright::plan {

/// Returns the text of `scenarios/schema/program.schema.json`. Its pattern for instructions uses
/// the names in instruction_traits.
std::string program_schema();

}  // namespace pipewright::plan
