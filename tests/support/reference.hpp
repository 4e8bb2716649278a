#pragma once

// Reference data of other toolkits and papers. A selection of it is in tests/data/reference and
// always compared. The full folder is compared if the variable PIPEWRIGHT_REFERENCE_DIR names it,
// which the ctest entries NAME/reference set.
//
// cases.csv in the selection states the number of rows and cases of each of its files. A run must
// find exactly this many, and in the full folder at least as many, so that no comparison passes on
// nothing.

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::test {

/// Returns the path of the file `name`, such as "schedules/torch_GPipe.csv". Skips the test case
/// with a reason if it is absent.
std::filesystem::path reference_file(const std::string& name);

/// One row of a CSV file with a header: column → cell.
using ReferenceRow = std::map<std::string, std::string>;
/// Calls `visit` for each row of a CSV file, quoted cells included.
void for_each_row(const std::string& name, const std::function<void(const ReferenceRow&)>& visit);

/// Returns the cases of a JSON file that is a list of them.
plan::Json reference_cases(const std::string& name);

/// One configuration of a reference schedule: the columns that its rows have in common, and its
/// orders. Empty actions, which are idle slots, are omitted.
struct ReferenceSchedule {
  ReferenceRow columns;  // of its first row
  std::vector<std::vector<std::string>> ranks;
  int number(const std::string& column) const { return std::stoi(columns.at(column)); }
};
/// Returns all configurations of a table of orders. They are distinguished by P, M, V and the
/// columns named in `keys`.
std::vector<ReferenceSchedule> reference_schedules(const std::string& name,
                                                   const std::vector<std::string>& keys = {});

/// Returns a request with the sizes of a reference schedule and our name for it.
plan::ScheduleRequest request_of(const ReferenceSchedule& reference, const std::string& name);

/// Returns the cells of every rank.
std::vector<std::vector<std::string>> cells_of(const plan::Schedule& schedule);

/// Prints "compared: torch_GPipe.csv: 33 of 33 are equal" to the test's output, which `./dev test`
/// collects. Fails if none was compared.
void report_equal(const std::string& name, std::size_t equal, std::size_t all,
                  const std::string& more = "");

}  // namespace pipewright::test
