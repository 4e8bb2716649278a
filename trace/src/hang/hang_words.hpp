#pragma once

// Describes operations of a hang as text.

#include <string>

#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

/// Returns a text such as "recv from rank 1" or "all_reduce of group dp".
std::string in_words(const FlightOperation& operation, const std::string& group);

/// Returns the group's name, with its description if it has one.
std::string name_of(const FlightGroup& group);

}  // namespace pipewright::trace
