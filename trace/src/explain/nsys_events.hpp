#pragma once

// The ranks of an export of Nsight Systems (SQLite): NVTX ranges, and the device's work with the
// calls that have launched it. Tables and columns: NVIDIA's "SQLite Export Schema Reference".

#include <filesystem>
#include <functional>
#include <vector>

#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

/// One for each process that has ranges of a pipeline or of torch's operators; by the devices that
/// they work on, or by their numbers. Throws InputError that names file, table and column. `ask` is
/// called as `read_ranks` does.
std::vector<PipelineEvents> read_nsys_ranks(const std::filesystem::path& file,
                                            const std::function<void()>& ask);

}  // namespace pipewright::trace
