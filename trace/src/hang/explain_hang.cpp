#include "pipewright/trace/hang/explain_hang.hpp"

#include "pipewright/trace/files/schedule_file.hpp"

namespace pipewright::trace {

HangDiagnosis explain_hang(const std::vector<std::filesystem::path>& dumps,
                           const std::string& schedule) {
  std::vector<plan::Program> programs;
  if (!schedule.empty()) {
    LoweredSchedule read = read_schedule(schedule, {});
    if (!read.has_transfers)
      programs.push_back(
          plan::lower(read.schedule, {.receives = plan::ReceivePlacement::WithSend}));
    programs.insert(programs.begin(), std::move(read.program));
  }
  return diagnose_hang(read_flight_records(dumps), programs);
}

}  // namespace pipewright::trace
