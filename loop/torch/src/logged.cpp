#include "logged.hpp"

namespace pipewright::loop {

TrainingOptions logged(const TrainingOptions& options, StepLog& log, const Prepared& prepared) {
  TrainingOptions with_log = options;
  with_log.after_step = [&log, &prepared, before = options.after_step](
                            int step, const exec::StepResult& result) {
    if (before)
      before(step, result);
    log.add(step_line(step, result, prepared.scenario, prepared.workload));
  };
  with_log.after_record = [&log, before = options.after_record](const StepRecord& record) {
    if (before)
      before(record);
    log.show([&] { return timeline_of(record, "last step"); });
  };
  return with_log;
}

}  // namespace pipewright::loop
