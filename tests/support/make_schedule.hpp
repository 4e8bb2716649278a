#pragma once

#include <string>

#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::test {

/// A schedule by its name and sizes. Throws InputError when it does not take them.
inline plan::Schedule make(const std::string& name, int ranks, int microbatches, int chunks = 0) {
  plan::ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  request.chunks = chunks;
  return plan::make_schedule(request);
}

}  // namespace pipewright::test
