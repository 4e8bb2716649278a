#pragma once

#include <string>

#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::test {

/// Makes a schedule from its name and sizes. Throws InputError if it does not support them.
inline plan::Schedule make(const std::string& name, int ranks, int microbatches, int chunks = 0) {
  plan::ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  request.chunks = chunks;
  return plan::make_schedule(request);
}

}  // namespace pipewright::test
