#pragma once

// Explains why a job hangs, from dumps of torch's FlightRecorder and the job's schedule.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/hang/diagnosis.hpp"

namespace pipewright::trace {

/// Diagnoses the dumps. `schedule` is a file as `read_schedule` takes it, or empty. A schedule
/// without communication is lowered in two ways: with receives directly before their use, and, as
/// torch places them, with receives as early as the sends. The one that the job follows is used.
/// Throws as `read_flight_records`, `read_schedule` and `diagnose_hang` do.
HangDiagnosis explain_hang(const std::vector<std::filesystem::path>& dumps,
                           const std::string& schedule);

}  // namespace pipewright::trace
