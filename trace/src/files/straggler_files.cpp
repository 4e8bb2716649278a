#include "pipewright/trace/files/straggler_files.hpp"

#include <nlohmann/json.hpp>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/trace/files/recorded_days.hpp"
#include "pipewright/trace/files/timeline_file.hpp"

namespace pipewright::trace {

void write_stragglers(const std::filesystem::path& folder, const StragglerReport& report,
                      const plan::EventTable& timeline) {
  std::filesystem::create_directories(folder);
  write_timeline_file(folder / "timeline.pwt", timeline);
  write_timeline_file(folder / "timeline.json", timeline);
  plan::write_file(folder / "schedule.csv", plan::to_csv(report.steps.plan.schedule));
  plan::write_file(folder / recorded_steps_file, models::to_csv(record_of(report.steps)));
  plan::write_file(folder / "stragglers.json", document_of(report).dump(1) + "\n");
}

plan::EventTable read_job_timeline(const std::filesystem::path& file,
                                   std::vector<std::string>& problems) {
  const JobSteps steps = job_steps(read_job_trace(file, problems));
  return job_timeline(steps, slowest_first(straggler_metrics(steps), own_slowness(steps)));
}

}  // namespace pipewright::trace
