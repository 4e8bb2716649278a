#include "exec/support/paced_pipeline.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/timeline/aligned_timeline.hpp"
#include "support/catch.hpp"

namespace paced_pipeline_test {

using namespace pipewright;
using exec::InstructionRecord;
using plan::Seconds;

constexpr engine::PacedTimes pace{Seconds{2e-3}, Seconds{2e-3}, Seconds{2e-3}};

/// The records of one step, by rank.
struct Run {
  std::vector<std::vector<InstructionRecord>> ranks;
  Seconds duration;
};

Run run(const test::PacedPipeline& pipeline) {
  Run run{.ranks = decltype(Run::ranks)(pipeline.program.ranks.size()), .duration = {}};
  exec::Executor executor(pipeline.program, pipeline.partition, pipeline.setup,
                          {.observer = [&](const InstructionRecord& record) {
                            run.ranks[static_cast<std::size_t>(record.rank)].push_back(record);
                          }});
  run.duration = executor.step(0).value().duration;
  return run;
}

/// Returns the compute instructions, in order.
std::string compute_of(const std::vector<plan::Instruction>& instructions) {
  std::string text;
  for (const plan::Instruction& i : instructions)
    if (plan::is_compute(i.kind))
      text += to_string(i) + " ";
  return text;
}

/// Returns the compute instructions as they ran. Checks that each began after the one before had
/// ended.
std::string compute_of(const std::vector<InstructionRecord>& records) {
  std::vector<plan::Instruction> instructions;
  Seconds end;
  for (const InstructionRecord& record : records) {
    instructions.push_back(record.instruction);
    if (!plan::is_compute(record.instruction.kind))
      continue;
    CHECK(record.start.value >= end.value);
    end = record.end;
  }
  return compute_of(instructions);
}

/// Returns the minimum time of an action.
Seconds pace_of(plan::InstructionKind kind) {
  if (kind == plan::InstructionKind::Backward)
    return pace.input_gradient + pace.weight_gradient;
  const bool is_action = kind == plan::InstructionKind::Forward ||
                         kind == plan::InstructionKind::InputGradient ||
                         kind == plan::InstructionKind::WeightGradient;
  return is_action ? pace.forward : Seconds{};
}

plan::Timeline timeline_of(const Run& run) {
  plan::Timeline timeline{.name = "measured",
                          .ranks = static_cast<int>(run.ranks.size()),
                          .length = run.duration,
                          .spans = {},
                          .memory = {}};
  for (const auto& records : run.ranks)
    for (const InstructionRecord& record : records)
      timeline.spans.push_back({record.rank, plan::row_of(record.instruction.kind),
                                to_string(record.instruction), record.start, record.end});
  return timeline;
}

void check(const test::PacedPipeline& pipeline, const Run& run) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    CHECK(compute_of(run.ranks[rank]) == compute_of(pipeline.program.ranks[rank]));
    CHECK(run.ranks[rank].size() == pipeline.program.ranks[rank].size());
    for (const InstructionRecord& record : run.ranks[rank])
      CHECK((record.end - record.start).value >= pace_of(record.instruction.kind).value);
  }
  const auto passages = plan::passages_of(timeline_of(run));
  for (const auto& [from, to, sent, arrived] : passages)
    CHECK(arrived.value >= sent.value);
  // All ranks read one clock, so the offsets found must lie within their stated uncertainty.
  const auto clocks = plan::clock_offsets(static_cast<int>(run.ranks.size()), passages);
  CHECK(clocks.residual == Seconds{});
  for (const Seconds offset : clocks.offset)
    CHECK(std::abs(offset.value) <= clocks.uncertainty.value);
}

std::optional<test::PacedPipeline> pipeline_of(const std::string& schedule) {
  plan::ScheduleRequest request;
  request.name = schedule;
  request.ranks = 4;
  request.microbatches = 8;
  try {
    return test::paced_pipeline(request, pace);
  } catch (const plan::InputError&) {
    return {};  // the schedule does not train
  }
}

TEST_CASE("Every schedule runs its actions in order, each when its data has arrived", "[exec]") {
  int trained = 0;
  for (const std::string& name : plan::schedule_names()) {
    const auto pipeline = pipeline_of(name);
    if (!pipeline)
      continue;
    INFO(name);
    ++trained;
    const Run measured = run(*pipeline);
    check(*pipeline, measured);
    // Sleep may last longer than requested, but not shorter.
    const Seconds predicted = test::predicted_time(*pipeline);
    CHECK(measured.duration.value >= predicted.value);
    fmt::print("{}: {:.3f} of the predicted time\n", name, measured.duration / predicted);
  }
  CHECK(trained > 10);
}

}  // namespace paced_pipeline_test
