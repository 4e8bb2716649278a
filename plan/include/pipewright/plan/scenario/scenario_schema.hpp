#pragma once

// The JSON Schema of scenario files, with which editors complete and check them.

#include <string>

namespace pipewright::plan {

/// The JSON Schema of scenario files, made from the fields that the reader knows: the text of
/// `scenarios/schema/scenario.schema.json`.
std::string scenario_schema();

}  // namespace pipewright::plan
