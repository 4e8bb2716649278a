#pragma once

// The JSON Schema of program files, with which editors check them.

#include <string>

namespace pipewright::plan {

/// Returns the text of `scenarios/schema/program.schema.json`. Its pattern of an instruction has
/// the words of instruction_traits.
std::string program_schema();

}  // namespace pipewright::plan
