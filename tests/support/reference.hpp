#pragma once

// Reference data of other toolkits: read where the folder is there, skipped in words where it is
// not.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::test {

/// The file `name`, such as "schedules/torch_GPipe.csv"; nothing, with a warning in the test's
/// output, where it is absent.
std::optional<std::filesystem::path> reference_file(const std::string& name);

/// One row of a CSV file with a header: column → cell.
using ReferenceRow = std::map<std::string, std::string>;
/// Calls `visit` for each row, quoted cells included.
void for_each_row(const std::filesystem::path& file,
                  const std::function<void(const ReferenceRow&)>& visit);

/// One configuration of a reference schedule: what its rows have in common, and its orders. Empty
/// actions, idle slots, are left out.
struct ReferenceSchedule {
  ReferenceRow columns;  // of its first row
  std::vector<std::vector<std::string>> ranks;
  int number(const std::string& column) const { return std::stoi(columns.at(column)); }
};
/// All configurations of a file, told apart by P, M, V and the columns named in `keys`.
std::vector<ReferenceSchedule> read_reference_schedules(const std::filesystem::path& file,
                                                        const std::vector<std::string>& keys = {});

/// The sizes of a reference schedule, asked for by our name.
plan::ScheduleRequest request_of(const ReferenceSchedule& reference, const std::string& name);

/// The cells of every rank.
std::vector<std::vector<std::string>> cells_of(const plan::Schedule& schedule);

/// "torch_GPipe.csv: 33 of 33 configurations match", on the test's output.
void report_matches(const std::filesystem::path& file, std::size_t matching, std::size_t all);

}  // namespace pipewright::test
