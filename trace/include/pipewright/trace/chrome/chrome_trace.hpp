#pragma once

// Reads foreign traces: Chrome Trace Event JSON, as written by torch's profiler, browsers and many
// other tools.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// Name of the track with a rank's pipeline actions ("2F0"), if the trace has them:
/// torch.distributed.pipelining marks actions as "PP:2F0". The track comes first in its rank; the
/// rank's other pipeline tracks are called "pipeline send", ….
inline constexpr const char* pipeline_track = "pipeline";
/// Returns true if `name` is the name of a pipeline track.
bool is_pipeline_track(const std::string& name);

/// Reads `{"traceEvents": […]}` or a bare list, also gzipped. Events X, B and E become tracks, with
/// nested events one `depth` below; M gives names and order; C and torch's [memory] give memory.
/// The whole file is one rank if it says which rank it belongs to (`distributedInfo`) or if exactly
/// one of its processes marks actions; otherwise each process is a rank. If actions are marked on a
/// device as well, the pipeline track is the device's, and the host's is called "pipeline on the
/// host".
///
/// Invalid events are skipped. `problems` says which, at what byte of the text, and why: the first
/// few in full, then the number of the others. A truncated file yields the events before the cut.
/// Throws MalformedFile if no event can be read, InputError if the file cannot be opened or read.
plan::EventTable read_chrome_trace(const std::filesystem::path& file,
                                   std::vector<std::string>& problems);

/// Reads the files of a run, one per rank, as one table. Assumes that their clocks agree.
plan::EventTable read_chrome_traces(const std::vector<std::filesystem::path>& files,
                                    std::vector<std::string>& problems);

}  // namespace pipewright::trace
