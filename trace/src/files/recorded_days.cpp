#include "pipewright/trace/files/recorded_days.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::trace {
namespace {

constexpr auto not_told = std::numeric_limits<double>::quiet_NaN();

/// Replaces unknown durations by the median of the known ones; returns false if most are unknown.
bool fill_gaps(std::vector<double>& seconds) {
  std::vector<double> told;
  std::copy_if(seconds.begin(), seconds.end(), std::back_inserter(told),
               [](double own) { return !std::isnan(own); });
  if (told.empty() || 2 * told.size() < seconds.size())
    return false;
  const double usual = plan::median(told);
  for (double& own : seconds)
    if (std::isnan(own))
      own = usual;
  return true;
}

/// Collects the durations of one pipeline, operation by operation.
class PipelineRecord {
 public:
  explicit PipelineRecord(const std::vector<plan::Timeline>& steps) : steps_(steps) {
    for (std::size_t step = 0; step < steps.size(); ++step)
      add_step(step);
  }

  void add_to(models::RecordedSteps& record, int replica) {
    for (auto& [place, operation] : operations_)
      if (fill_gaps(operation.seconds)) {
        operation.replica = replica;
        record.operations.push_back(std::move(operation));
      }
  }

 private:
  struct Spans {
    std::map<plan::InstructionKey, const plan::Span*> sends;
    std::vector<std::vector<const plan::Span*>> computes;  // by rank, in the order of their ends
  };

  void add_step(std::size_t step) {
    Spans spans{.sends = {}, .computes = {}};
    spans.computes.resize(static_cast<std::size_t>(steps_[step].ranks));
    for (const plan::Span& span : steps_[step].spans) {
      const auto instruction = plan::parse_instruction(span.action);
      if (!instruction)
        continue;
      if (plan::is_send(instruction->kind))
        spans.sends[plan::key_of(*instruction)] = &span;
      if (span.row != plan::Row::Compute)
        continue;
      double& seconds = seconds_of(span.rank, *instruction, step);
      seconds = (std::isnan(seconds) ? 0 : seconds) + (span.end - span.start - span.late).value;
      spans.computes[static_cast<std::size_t>(span.rank)].push_back(&span);
    }
    for (auto& computes : spans.computes)
      std::sort(computes.begin(), computes.end(),
                [](const auto* a, const auto* b) { return a->end < b->end; });
    for (const plan::Span& span : steps_[step].spans)
      if (const auto instruction = plan::parse_instruction(span.action);
          instruction && plan::is_receive(instruction->kind))
        add_transfer(span, *instruction, spans, step);
  }

  double& seconds_of(int rank, const plan::Instruction& instruction, std::size_t step) {
    models::RecordedOperation& operation = operations_[{rank, plan::key_of(instruction)}];
    if (operation.seconds.empty()) {
      operation.rank = rank;
      operation.instruction = instruction;
      operation.seconds.assign(steps_.size(), not_told);
    }
    return operation.seconds[step];
  }

  void add_transfer(const plan::Span& receive, const plan::Instruction& what, const Spans& spans,
                    std::size_t step) {
    plan::Instruction send = what;
    const bool forward = what.kind == plan::InstructionKind::ReceiveActivation;
    send.kind =
        forward ? plan::InstructionKind::SendActivation : plan::InstructionKind::SendGradient;
    send.stage += forward ? -1 : 1;
    const auto sent = spans.sends.find(plan::key_of(send));
    if (sent == spans.sends.end())
      return;
    double& seconds = seconds_of(sent->second->rank, send, step);
    const plan::Seconds both = std::max(sent->second->start, receive.start);
    if (is_free(spans.computes[static_cast<std::size_t>(receive.rank)], both, receive.end))
      seconds = (receive.end - both).value;
  }

  /// Returns true if none of the computes, which do not overlap, runs between the two times.
  static bool is_free(const std::vector<const plan::Span*>& computes, plan::Seconds from,
                      plan::Seconds to) {
    const auto next =
        std::upper_bound(computes.begin(), computes.end(), from,
                         [](plan::Seconds time, const auto* own) { return time < own->end; });
    return to >= from && (next == computes.end() || (*next)->start >= to);
  }

  const std::vector<plan::Timeline>& steps_;
  std::map<std::tuple<int, plan::InstructionKey>, models::RecordedOperation> operations_;
};

}  // namespace

models::RecordedSteps read_record(const std::filesystem::path& file_or_folder) {
  if (!std::filesystem::is_directory(file_or_folder))
    return models::read_recorded_steps(file_or_folder);
  const auto table = file_or_folder / recorded_steps_file;
  if (!std::filesystem::exists(table))
    throw plan::InputError(
        fmt::format("{}: has no {}: `pipewright run` writes one with all measured steps",
                    file_or_folder.string(), recorded_steps_file));
  return models::read_recorded_steps(table);
}

models::RecordedSteps record_of(const std::vector<std::vector<plan::Timeline>>& pipelines,
                                int first) {
  models::RecordedSteps record;
  const std::size_t steps = pipelines.empty() ? 0 : pipelines.front().size();
  for (std::size_t step = 0; step < steps; ++step)
    record.numbers.push_back(first + static_cast<int>(step));
  for (std::size_t replica = 0; replica < pipelines.size(); ++replica)
    PipelineRecord(pipelines[replica]).add_to(record, static_cast<int>(replica));
  return record;
}

}  // namespace pipewright::trace
