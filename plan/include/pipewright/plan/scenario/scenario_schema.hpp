#pragma once

// The JSON Schema of scenario files, which editors use to complete and check them.

#include <string>

namespace pipewright::plan {

/// Returns the text of `scenarios/schema/scenario.schema.json`, generated from the fields that the
/// reader knows.
std::string scenario_schema();

}  // namespace pipewright::plan
