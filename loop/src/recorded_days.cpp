#include "pipewright/loop/recorded_days.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "pipewright/plan/error.hpp"

namespace pipewright::loop {

plan::RecordedSteps read_record(const std::filesystem::path& file_or_folder) {
  if (!std::filesystem::is_directory(file_or_folder))
    return plan::read_recorded_steps(file_or_folder);
  const auto table = file_or_folder / recorded_steps_file;
  if (!std::filesystem::exists(table))
    throw plan::InputError(
        fmt::format("{}: has no {}: `pipewright run` leaves one, of all the steps that it measured",
                    file_or_folder.string(), recorded_steps_file));
  return plan::read_recorded_steps(table);
}

plan::RecordedSteps record_of(const std::vector<plan::Timeline>& steps, int first) {
  std::map<std::tuple<int, plan::InstructionKey>, plan::RecordedOperation> operations;
  plan::RecordedSteps record;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    record.numbers.push_back(first + static_cast<int>(step));
    for (const plan::Span& span : steps[step].spans) {
      const auto instruction = plan::parse_instruction(span.action);
      if (span.row != plan::Row::Compute || !instruction)
        continue;
      auto& operation = operations[{span.rank, plan::key_of(*instruction)}];
      operation.rank = span.rank;
      operation.instruction = *instruction;
      operation.seconds.resize(steps.size());
      operation.seconds[step] += (span.end - span.start - span.late).value;
    }
  }
  for (auto& [place, operation] : operations)
    record.operations.push_back(std::move(operation));
  return record;
}

}  // namespace pipewright::loop
