#pragma once

// Reference data of other toolkits and papers. A selection of it lies in tests/data/reference and
// is always compared with. The whole folder is, where the variable PIPEWRIGHT_REFERENCE_DIR names
// it, which the ctest entries NAME/reference set.
//
// cases.csv in the selection says how many rows and cases each of its files has. So many there must
// be, and in the whole folder no fewer: who goes over a file goes over something.

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::test {

/// The file `name`, such as "schedules/torch_GPipe.csv". The test case is skipped, in words, where
/// it is absent.
std::filesystem::path reference_file(const std::string& name);

/// One row of a CSV file with a header: column → cell.
using ReferenceRow = std::map<std::string, std::string>;
/// Calls `visit` for each row of a CSV file, quoted cells included.
void for_each_row(const std::string& name, const std::function<void(const ReferenceRow&)>& visit);

/// The cases of a JSON file that is a list of them.
plan::Json reference_cases(const std::string& name);

/// One configuration of a reference schedule: what its rows have in common, and its orders. Empty
/// actions, idle slots, are left out.
struct ReferenceSchedule {
  ReferenceRow columns;  // of its first row
  std::vector<std::vector<std::string>> ranks;
  int number(const std::string& column) const { return std::stoi(columns.at(column)); }
};
/// All configurations of a table of orders. They are told apart by
/// P, M, V and the columns named in `keys`.
std::vector<ReferenceSchedule> reference_schedules(const std::string& name,
                                                   const std::vector<std::string>& keys = {});

/// The sizes of a reference schedule, asked for by our name.
plan::ScheduleRequest request_of(const ReferenceSchedule& reference, const std::string& name);

/// The cells of every rank.
std::vector<std::vector<std::string>> cells_of(const plan::Schedule& schedule);

/// Says "compared: torch_GPipe.csv: 33 of 33 are equal" on the test's output, which `./dev test`
/// collects. That none was compared is a failure.
void report_equal(const std::string& name, std::size_t equal, std::size_t all,
                  const std::string& more = "");

}  // namespace pipewright::test
