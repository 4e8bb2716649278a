#pragma once

// The names of JSON alone: reading <nlohmann/json.hpp> costs a source over a second, and a value's
// header does not need it.

#include <nlohmann/json_fwd.hpp>

namespace pipewright::plan {

/// Keeps the order of keys as written, so that files stay readable after a round trip.
using Json = nlohmann::ordered_json;
class JsonDocument;
class JsonObject;

}  // namespace pipewright::plan
