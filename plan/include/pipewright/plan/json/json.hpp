#pragma once

// Forward declarations of JSON types, because including <nlohmann/json.hpp> adds over a second to a
// source's compile time and headers of values do not need it.

#include <nlohmann/json_fwd.hpp>

namespace pipewright::plan {

/// JSON that keeps the order of keys as written, so that files stay readable after a round trip.
using Json = nlohmann::ordered_json;
class JsonDocument;
class JsonObject;

}  // namespace pipewright::plan
