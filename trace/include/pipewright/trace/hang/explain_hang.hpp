#pragma once

// Why a job stands still, from its files: dumps of torch's FlightRecorder and its schedule.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/hang/diagnosis.hpp"

namespace pipewright::trace {

/// `schedule`: a file as `read_schedule` takes it, or empty. One without communication is taken
/// with receives right before their use and, as torch places them, with those as early as the
/// sends: whichever the job follows. Throws as `read_flight_records`, `read_schedule` and
/// `diagnose_hang`.
HangDiagnosis explain_hang(const std::vector<std::filesystem::path>& dumps,
                           const std::string& schedule);

}  // namespace pipewright::trace
