#pragma once

// Operations of a hang in words.

#include <string>

#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

/// "recv from rank 1", "all_reduce of group dp".
std::string in_words(const FlightOperation& operation, const std::string& group);

/// The group's name, with its description where it has one.
std::string name_of(const FlightGroup& group);

}  // namespace pipewright::trace
