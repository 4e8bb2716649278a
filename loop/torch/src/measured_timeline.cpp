#include "pipewright/loop_torch/measured_timeline.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "pipewright/plan/timeline/aligned_timeline.hpp"

namespace pipewright::loop {
namespace {

/// If the records hold more numbers than this, which every process receives, only the first
/// pipeline is gathered.
constexpr std::size_t most_numbers = std::size_t{1} << 25;  // 256 MB
/// Columns of a record: step, index in the rank's script, times, memory, tensor-parallel
/// communication.
constexpr int columns = 8;

/// Returns an identifier of this machine's steady clock. All processes since boot share it, except
/// those in another time namespace.
std::string clock_name() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty())
    return "";
  std::error_code unknown;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/time", unknown).string();
}

/// Returns when each step began.
at::Tensor begins_of(const std::vector<StepRecord>& steps) {
  std::vector<double> begins;
  for (const StepRecord& step : steps)
    begins.push_back(step.begin.value);
  return at::tensor(begins, at::kDouble);
}

void add_rows(std::size_t step, const std::vector<exec::InstructionRecord>& records,
              const plan::Program& program, std::vector<double>& numbers) {
  for (const exec::InstructionRecord& record : records) {
    const auto& script = program.ranks[static_cast<std::size_t>(record.rank)];
    const auto at = std::find(script.begin(), script.end(), record.instruction);
    numbers.insert(
        numbers.end(),
        {static_cast<double>(step), static_cast<double>(at - script.begin()), record.start.value,
         record.end.value, static_cast<double>(record.peak.value),
         static_cast<double>(record.held_after.value), record.shards.value, record.late.value});
  }
}

/// Packs the records of this process's rank, a row each. In a job a process has at most one rank.
at::Tensor rows_of(const std::vector<StepRecord>& steps, const plan::Program& program,
                   bool of_all_pipelines) {
  std::vector<double> numbers;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const auto& records : steps[step].ranks)
      add_rows(step, records, program, numbers);
    for (const auto& records : steps[step].others)
      if (of_all_pipelines)
        add_rows(step, records, program, numbers);
  }
  return at::tensor(numbers, at::kDouble).reshape({-1, columns});
}

/// Unpacks the rows of `rows_of` into the steps.
void add(const at::Tensor& rows, int rank, const plan::Program& program,
         std::vector<StepRecord>& steps) {
  const auto row = rows.accessor<double, 2>();
  const auto& script = program.ranks[static_cast<std::size_t>(rank)];
  for (std::int64_t i = 0; i < row.size(0); ++i) {
    const auto number = [&](int column) { return static_cast<std::int64_t>(row[i][column]); };
    steps.at(static_cast<std::size_t>(number(0)))
        .ranks[static_cast<std::size_t>(rank)]
        .push_back({.rank = rank,
                    .instruction = script.at(static_cast<std::size_t>(number(1))),
                    .start = {row[i][2]},
                    .end = {row[i][3]},
                    .held_before = {},
                    .peak = {number(4)},
                    .held_after = {number(5)},
                    .shards = {row[i][6]},
                    .late = {row[i][7]}});
  }
}

/// Aligns a step whose ranks were recorded on different clocks. `shown` says which machine's clock
/// each rank used, and when the step began on it.
MeasuredTimeline on_one_clock(const StepRecord& step, const std::vector<plan::ClockSource>& shown) {
  plan::Timeline timeline = timeline_of(step, "measured");
  auto passages = plan::passages_of(timeline);
  const auto by_machines = plan::passages_of(shown);
  passages.insert(passages.end(), by_machines.begin(), by_machines.end());
  auto clocks = plan::clock_offsets(timeline.ranks, passages);
  return {plan::aligned(std::move(timeline), clocks), std::move(clocks)};
}

/// Returns the first tensor-parallel ranks of each stage, by pipeline.
std::vector<std::vector<int>> pipelines_of(const exec::JobGrid& grid) {
  std::vector<std::vector<int>> pipelines;
  const std::size_t ranks = grid.first_pipeline().size();
  for (int own = 0; own < grid.size(); ++own) {
    const exec::JobRank rank = grid.rank(own);
    if (rank.shard != 0)
      continue;
    pipelines.resize(static_cast<std::size_t>(rank.replicas), std::vector<int>(ranks));
    pipelines[static_cast<std::size_t>(rank.replica)][static_cast<std::size_t>(rank.rank)] = own;
  }
  return pipelines;
}

/// Builds the timeline of threads in one process, which share a clock.
MeasuredTimeline of_threads(const StepRecord& step) {
  MeasuredTimeline measured{timeline_of(step, "measured"), {}};
  for (auto first = step.others.begin(); first != step.others.end();) {
    const auto end = first + static_cast<std::ptrdiff_t>(step.ranks.size());
    measured.others.push_back(timeline_of({step.begin, step.duration, {first, end}}, "measured"));
    first = end;
  }
  return measured;
}

/// Returns true if the records of all pipelines may be gathered. The answer is the same on every
/// process.
bool are_few(std::size_t steps, const plan::Program& program, int processes) {
  std::size_t longest = 0;
  for (const auto& script : program.ranks)
    longest = std::max(longest, script.size());
  return steps * longest * static_cast<std::size_t>(processes * columns) <= most_numbers;
}

/// The records of all processes.
class GatheredSteps {
 public:
  GatheredSteps(const std::vector<StepRecord>& own, const plan::Program& program,
                const Membership& members, bool of_all_pipelines)
      : own_(own),
        program_(program),
        clock_names_(members.from_all(clock_name())),
        theirs_(members.from_all(
            exec::Tensors{rows_of(own, program, of_all_pipelines), begins_of(own)})) {}

  /// Returns the timelines of one pipeline. `processes` are its ranks in order.
  std::vector<MeasuredTimeline> timelines(const std::vector<int>& processes) const {
    std::vector<StepRecord> whole;
    for (const StepRecord& step : own_)
      whole.push_back({step.begin, step.duration, decltype(step.ranks)(program_.ranks.size())});
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
      add(theirs_[static_cast<std::size_t>(processes[rank])].at(0), static_cast<int>(rank),
          program_, whole);
    std::vector<MeasuredTimeline> timelines;
    for (std::size_t step = 0; step < whole.size(); ++step)
      timelines.push_back(on_one_clock(whole[step], sources(processes, step)));
    return timelines;
  }

 private:
  std::vector<plan::ClockSource> sources(const std::vector<int>& processes,
                                         std::size_t step) const {
    std::vector<plan::ClockSource> sources;
    for (const int rank : processes) {
      const auto process = static_cast<std::size_t>(rank);
      const double began = theirs_[process].at(1)[static_cast<std::int64_t>(step)].item<double>();
      sources.push_back({clock_names_[process], {began}});
    }
    return sources;
  }

  const std::vector<StepRecord>& own_;
  const plan::Program& program_;
  const std::vector<std::string> clock_names_;
  const std::vector<exec::Tensors> theirs_;
};

}  // namespace

std::vector<MeasuredTimeline> measured_timelines(const std::vector<StepRecord>& own,
                                                 const plan::Program& program,
                                                 const exec::JobGrid& grid,
                                                 const Membership& members) {
  std::vector<MeasuredTimeline> timelines;
  if (!members.in_job()) {
    for (const StepRecord& step : own)
      timelines.push_back(of_threads(step));
    return timelines;
  }
  const bool of_all_pipelines = are_few(own.size(), program, grid.size());
  const GatheredSteps gathered(own, program, members, of_all_pipelines);
  if (!members.is_first())
    return {};
  auto pipelines = pipelines_of(grid);
  if (!of_all_pipelines)
    pipelines.resize(1);
  timelines = gathered.timelines(pipelines.front());
  for (std::size_t other = 1; other < pipelines.size(); ++other) {
    auto theirs = gathered.timelines(pipelines[other]);
    for (std::size_t step = 0; step < theirs.size(); ++step)
      timelines[step].others.push_back(std::move(theirs[step].timeline));
  }
  return timelines;
}

MeasuredTimeline measured_timeline(const std::vector<StepRecord>& own, std::size_t skip,
                                   const plan::Program& program, const exec::JobGrid& grid,
                                   const Membership& members) {
  std::size_t typical = 0;
  if (members.is_first())
    typical = typical_step(own, skip);
  typical = std::stoul(members.from_first(std::to_string(typical)));
  const auto all = measured_timelines({own.at(typical)}, program, grid, members);
  return all.empty() ? MeasuredTimeline{} : all.front();
}

}  // namespace pipewright::loop
