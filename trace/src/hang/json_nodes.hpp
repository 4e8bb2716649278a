#pragma once

// JSON as the tree that a pickle gives, so that a reader of both has to know one.

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/pickle/pickle.hpp"

namespace pipewright::trace {

/// Whole numbers of more than 63 bits are numbers.
plan::Pickled nodes_of_json(const plan::Json& json);

}  // namespace pipewright::trace
