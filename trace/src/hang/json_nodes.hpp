#pragma once

// Converts JSON to the tree that a pickle gives, so that one reader suffices for both.

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/pickle/pickle.hpp"

namespace pipewright::trace {

/// Integers of more than 63 bits become floating-point numbers.
plan::Pickled nodes_of_json(const plan::Json& json);

}  // namespace pipewright::trace
