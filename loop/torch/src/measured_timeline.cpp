#include "pipewright/loop_torch/measured_timeline.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "pipewright/plan/timeline/aligned_timeline.hpp"

namespace pipewright::loop {
namespace {

constexpr int columns = 8;  // of a record: step, place in the rank's script, times, memory, shards

/// The steady clock of this machine: of all processes since the kernel was started, but for those
/// whose time was moved.
std::string clock_name() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty())
    return "";
  std::error_code unknown;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/time", unknown).string();
}

/// When each step began.
at::Tensor begins_of(const std::vector<StepRecord>& steps) {
  std::vector<double> begins;
  for (const StepRecord& step : steps)
    begins.push_back(step.begin.value);
  return at::tensor(begins, at::kDouble);
}

/// A row of numbers for each record of this process's rank. In a job there is at most one.
at::Tensor rows_of(const std::vector<StepRecord>& steps, const plan::Program& program) {
  std::vector<double> numbers;
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
      for (const exec::InstructionRecord& record : steps[step].ranks[rank]) {
        const auto& script = program.ranks[rank];
        const auto at = std::find(script.begin(), script.end(), record.instruction);
        numbers.insert(
            numbers.end(),
            {static_cast<double>(step), static_cast<double>(at - script.begin()),
             record.start.value, record.end.value, static_cast<double>(record.peak.value),
             static_cast<double>(record.held_after.value), record.shards.value, record.late.value});
      }
  return at::tensor(numbers, at::kDouble).reshape({-1, columns});
}

/// Puts back what `rows_of` took apart.
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

}  // namespace

namespace {

/// A step whose ranks were recorded by clocks of their own, put on one. `shown`: what each of these
/// clocks is made of.
MeasuredTimeline on_one_clock(const StepRecord& step, const std::vector<plan::ClockSource>& shown) {
  plan::Timeline timeline = timeline_of(step, "measured");
  auto passages = plan::passages_of(timeline);
  const auto by_machines = plan::passages_of(shown);
  passages.insert(passages.end(), by_machines.begin(), by_machines.end());
  auto clocks = plan::clock_offsets(timeline.ranks, passages);
  return {plan::aligned(std::move(timeline), clocks), std::move(clocks)};
}

}  // namespace

std::vector<MeasuredTimeline> measured_timelines(const std::vector<StepRecord>& own,
                                                 const plan::Program& program,
                                                 const exec::JobGrid& grid,
                                                 const Membership& members) {
  std::vector<MeasuredTimeline> timelines;
  if (!members.in_job()) {
    for (const StepRecord& step : own)
      timelines.push_back({timeline_of(step, "measured"), {}});
    return timelines;
  }
  const auto clock_names = members.from_all(clock_name());
  const auto theirs = members.from_all(exec::Tensors{rows_of(own, program), begins_of(own)});
  if (!members.is_first())
    return {};
  const std::vector<int> shown = grid.first_pipeline();
  const int ranks = static_cast<int>(shown.size());
  std::vector<StepRecord> whole;
  for (const StepRecord& step : own)
    whole.push_back({step.begin, step.duration, decltype(step.ranks)(program.ranks.size())});
  for (int rank = 0; rank < ranks; ++rank)
    add(theirs[static_cast<std::size_t>(shown[static_cast<std::size_t>(rank)])].at(0), rank,
        program, whole);
  for (std::size_t step = 0; step < whole.size(); ++step) {
    std::vector<plan::ClockSource> sources;
    for (const int rank : shown) {
      const auto process = static_cast<std::size_t>(rank);
      const double began = theirs[process].at(1)[static_cast<std::int64_t>(step)].item<double>();
      sources.push_back({clock_names[process], {began}});
    }
    timelines.push_back(on_one_clock(whole[step], sources));
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
