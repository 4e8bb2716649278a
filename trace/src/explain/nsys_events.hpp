#pragma once

// Reads the ranks in an export of Nsight Systems (SQLite): NVTX ranges, and the device's work with
// the calls that launched it. Tables and columns: NVIDIA's "SQLite Export Schema Reference".

#include <filesystem>
#include <functional>
#include <vector>

#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

/// Returns one rank for each process with ranges of a pipeline or of torch's operators, ordered by
/// the devices that they use, or by process number. Throws InputError that names file, table and
/// column. `ask` is called as in `read_ranks`.
std::vector<PipelineEvents> read_nsys_ranks(const std::filesystem::path& file,
                                            const std::function<void()>& ask);

}  // namespace pipewright::trace
