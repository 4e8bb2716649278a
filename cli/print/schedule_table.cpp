#include "print/schedule_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/loop/predict/schedule_figures.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"

namespace pipewright::cli {
namespace {

constexpr int table_ranks = 4;
constexpr int table_microbatches = 8;
/// The work of a rank, with F = I = W = 1 for one microbatch on all its stages.
constexpr double table_work = 3.0 * table_microbatches;

std::string figure(const plan::ClosedForm& form, const plan::ScheduleSizes& sizes) {
  const auto value = form.value ? form.value(sizes) : std::nullopt;
  const std::string words = (form.is_limit ? "at most " : "") + form.words;
  // A formula that is a number needs no value.
  return !value || words == fmt::format("{:g}", *value) ? words
                                                        : fmt::format("{} = {:g}", words, *value);
}

plan::ScheduleRequest table_request(const plan::ScheduleDescriptor& entry) {
  plan::ScheduleRequest request;
  request.name = entry.name;
  request.ranks = table_ranks;
  request.microbatches = table_microbatches;
  request.chunks = entry.chunks == plan::Chunks::One || entry.is_forward_only ? 1 : 2;
  const plan::Seconds part{1.0 / request.chunks};
  request.costs = plan::equal_costs(part, part, part);
  return request;
}

std::string row(const plan::ScheduleDescriptor& entry) {
  const plan::ScheduleRequest request = table_request(entry);
  const plan::Schedule schedule = plan::make_schedule(request);
  const plan::Program program = plan::lower(schedule, plan::lowering_of(request));
  const plan::Timeline timeline = loop::timed(program, request.costs);
  const double ideal = entry.is_forward_only ? table_work / 3 : table_work;
  const auto peaks = plan::peak_activations(schedule);
  const auto versions = plan::weight_versions(program);
  const int copies = program.placement.is_bidirectional() && !entry.is_data_parallel ? 2 : 1;
  const plan::ScheduleSizes sizes{table_ranks, table_microbatches, request.chunks};
  return fmt::format("| `{}` | {} | {:g} | {:g} | {}{} | {:g} | {} | {} |\n", entry.name,
                     request.chunks, timeline.length.value - ideal,
                     plan::longest_span(timeline).value - ideal, figure(entry.bubble, sizes),
                     entry.bubble_is_of_span ? " (span)" : "",
                     *std::max_element(peaks.begin(), peaks.end()) / double(request.chunks),
                     figure(entry.activations, sizes),
                     copies * *std::max_element(versions.begin(), versions.end()));
}

}  // namespace

std::string schedule_table() {
  std::string text = fmt::format(
      "P = {} ranks, M = {} microbatches, F = I = W = 1 for a microbatch on all stages of a rank, "
      "B = "
      "I + W,\nno transfer time.\n\n"
      "| schedule | V | bubble | of the longest span | formula | activations | formula | weights "
      "|\n"
      "|---|---|---|---|---|---|---|---|\n",
      table_ranks, table_microbatches);
  for (const plan::ScheduleDescriptor& entry : plan::schedules())
    text += row(entry);
  text += "\n| schedule | takes |\n|---|---|\n";
  for (const plan::ScheduleDescriptor& entry : plan::schedules())
    if (!entry.takes.empty())
      text += fmt::format("| `{}` | {} |\n", entry.name, entry.takes);
  return text;
}

}  // namespace pipewright::cli
