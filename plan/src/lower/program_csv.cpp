#include "pipewright/plan/lower/program_csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "json/csv_rows.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/fused_cell.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::plan {
namespace {

bool torch_knows(InstructionKind kind) { return traits_of(kind).in_torch; }

bool append_torch_cell(std::string_view cell, std::vector<Instruction>& instructions) {
  return append_cell(cell, instructions) && torch_knows(instructions.back().kind);
}

std::vector<std::vector<Instruction>> read_rows(std::string_view text, const std::string& name) {
  std::vector<std::vector<Instruction>> ranks;
  std::vector<std::string> errors;
  for (const auto& row : csv_rows(text)) {
    auto& instructions = ranks.emplace_back();
    for (std::size_t column = 0; column < row.size(); ++column)
      if (!row[column].empty() && !append_torch_cell(row[column], instructions))
        errors.push_back(fmt::format(
            "{}:{}:{}: \"{}\" is not an instruction: write stage, one of F B I W R SEND_F RECV_F "
            "SEND_B "
            "RECV_B REDUCE_GRAD UNSHARD RESHARD and, but for the last three, microbatch",
            name, ranks.size(), column + 1, row[column]));
  }
  if (!errors.empty())
    throw MalformedFile(listed_lines(errors));
  return ranks;
}

/// Returns the schedule of the compute actions.
Schedule schedule_of(const std::vector<std::vector<Instruction>>& ranks) {
  Schedule schedule;
  for (const auto& instructions : ranks) {
    auto& actions = schedule.ranks.emplace_back();
    for (const Instruction& i : instructions)
      if (auto action = parse_action(to_string(i))) {
        schedule.microbatches = std::max(schedule.microbatches, i.microbatch + 1);
        action->fused_with_next = i.fused_with_next;
        actions.push_back(*action);
      }
  }
  return schedule;
}

/// Checks that the transfers stay within the stages and microbatches of the actions.
void check_bounds(const std::vector<std::vector<Instruction>>& ranks, const Schedule& schedule) {
  const int stages = stage_count(schedule);
  std::vector<std::string> errors;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Instruction& i : ranks[rank])
      if (i.stage >= stages)
        errors.push_back(
            fmt::format("rank {}, {}: there are {} stages only", rank, to_string(i), stages));
      else if (i.microbatch >= schedule.microbatches)
        errors.push_back(fmt::format("rank {}, {}: there are {} microbatches only", rank,
                                     to_string(i), schedule.microbatches));
  if (!errors.empty())
    throw InputError(listed_lines(errors));
}

}  // namespace

std::string to_csv(const Program& program) {
  std::string text;
  for (const auto& instructions : program.ranks) {
    std::string line;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      const bool fused = instructions[at].fused_with_next && at + 1 < instructions.size();
      if (!torch_knows(instructions[at].kind))
        continue;
      line += line.empty() ? "" : ",";
      const std::string first = to_string(instructions[at]);
      line += fused ? fused_cell(first, to_string(instructions[++at])) : first;
    }
    text += line + "\n";
  }
  return text;
}

Program transfers_from_csv(std::string_view text, const std::string& name) {
  auto ranks = read_rows(text, name);
  const Schedule schedule = schedule_of(ranks);
  if (schedule.microbatches == 0)
    throw MalformedFile(fmt::format("{}:1:1: no action in the file", name));
  validate(schedule);
  check_bounds(ranks, schedule);
  Program program = from_schedule(schedule, {});
  program.ranks = std::move(ranks);
  return program;
}

Program program_from_csv(std::string_view text, const std::string& name,
                         CommunicatorLayout communicators, TransferMode transfers) {
  Program program = transfers_from_csv(text, name);
  program.communicators = communicators;
  program.transfers = transfers;
  return with_slots(with_optimizer_steps(with_loads(std::move(program))));
}

Program with_transfers_of(const Program& transfers, const LoweringOptions& options) {
  Program program = transfers;
  program.communicators = options.communicators;
  program.transfers = options.transfers;
  program.blocking = options.blocking;
  for (auto& instructions : program.ranks)
    std::erase_if(instructions, [](const Instruction& i) { return sums_copies(i.kind); });
  return with_all_but_transfers(std::move(program), options);
}

}  // namespace pipewright::plan
