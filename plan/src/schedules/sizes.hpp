#pragma once

namespace pipewright::plan {

/// Throws InputError naming the schedule when there is no stage or no microbatch.
void check_sizes(const char* schedule, int stages, int microbatches);

}  // namespace pipewright::plan
