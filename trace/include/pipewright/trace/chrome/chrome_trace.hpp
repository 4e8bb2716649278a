#pragma once

// Traces of others: Chrome Trace Event JSON, as torch's profiler, browsers and many more write it.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// The track of a rank's actions ("2F0") where a trace has them: torch.distributed.pipelining marks
/// them as "PP:2F0". It comes first in its rank; those of the other rows are "pipeline send", ….
inline constexpr const char* pipeline_track = "pipeline";
/// Whether it is the name of one of them.
bool is_pipeline_track(const std::string& name);

/// Reads `{"traceEvents": […]}` or a bare list, also gzipped. Events X, B and E become tracks,
/// those inside others one `depth` below; M gives names and order; C and torch's [memory] give
/// memory. A rank is the file where it says of which rank it is (`distributedInfo`) or where one
/// process of it marks actions, and otherwise each process. Where actions are marked on a device as
/// well, the track is the device's, and the host's is "pipeline on the host".
///
/// Events that are wrong are left out, and `problems` says which, at what byte of the text, and
/// why: the first few, then how many more. Of a file that is cut off there is what could be read.
/// Throws MalformedFile where nothing could be, InputError where the file cannot be read.
plan::EventTable read_chrome_trace(const std::filesystem::path& file,
                                   std::vector<std::string>& problems);

/// The files of a run, one for each rank, as one table. Clocks are taken to agree.
plan::EventTable read_chrome_traces(const std::vector<std::filesystem::path>& files,
                                    std::vector<std::string>& problems);

}  // namespace pipewright::trace
