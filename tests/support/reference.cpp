#include "support/reference.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;

const fs::path selection = fs::path(PIPEWRIGHT_TEST_DATA_DIR) / "reference";

/// Returns the full reference folder if this run uses it; empty if the folder is absent.
const char* whole_folder() { return std::getenv("PIPEWRIGHT_REFERENCE_DIR"); }

std::vector<std::string> split_cells(const std::string& line) {
  std::vector<std::string> row{""};
  bool quoted = false;
  for (const char c : line)
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      row.emplace_back();
    else if (c != '\r')
      row.back() += c;
  return row;
}

std::size_t read_rows(const fs::path& file, const std::function<void(const ReferenceRow&)>& visit) {
  std::ifstream stream(file);
  REQUIRE(stream);
  std::string line;
  std::getline(stream, line);
  const auto header = split_cells(line);
  std::size_t rows = 0;
  for (; std::getline(stream, line); ++rows) {
    const auto cells = split_cells(line);
    REQUIRE(cells.size() == header.size());
    ReferenceRow row;
    for (std::size_t i = 0; i < header.size(); ++i)
      row[header[i]] = cells[i];
    visit(row);
  }
  return rows;
}

/// Requires the number of rows or cases (`column`) that cases.csv states.
void demand(const std::string& name, const std::string& column, std::size_t found) {
  std::size_t selected = 0;
  read_rows(selection / "cases.csv", [&](const ReferenceRow& row) {
    if (row.at("file") == name)
      selected = std::stoul(row.at(column));
  });
  INFO(name << " has " << found << " " << column);
  REQUIRE(selected > 0);
  if (whole_folder() == nullptr)
    REQUIRE(found == selected);
  else
    REQUIRE(found >= selected);
}

}  // namespace

fs::path reference_file(const std::string& name) {
  const char* const whole = whole_folder();
  if (whole != nullptr && *whole == '\0')
    skip(
        "the whole reference folder is not here: configure with -D "
        "PIPEWRIGHT_REFERENCE_DIR=FOLDER");
  const fs::path file = (whole == nullptr ? selection : fs::path(whole)) / name;
  if (!fs::exists(file))
    skip("there is no " + file.string());
  return file;
}

void for_each_row(const std::string& name, const std::function<void(const ReferenceRow&)>& visit) {
  demand(name, "rows", read_rows(reference_file(name), visit));
}

plan::Json reference_cases(const std::string& name) {
  std::ifstream stream(reference_file(name));
  auto cases = plan::Json::parse(stream);
  demand(name, "cases", cases.size());
  return cases;
}

std::vector<ReferenceSchedule> reference_schedules(const std::string& name,
                                                   const std::vector<std::string>& keys) {
  std::vector<ReferenceSchedule> all;
  std::map<std::string, std::size_t> known;
  read_rows(reference_file(name), [&](const ReferenceRow& row) {
    std::string key = row.at("P") + "/" + row.at("M") + "/" + row.at("V");
    for (const std::string& column : keys)
      key += "/" + row.at(column);
    const auto at = known.try_emplace(key, all.size());
    if (at.second)
      all.push_back({row, {}});
    auto& schedule = all[at.first->second];
    const auto rank = static_cast<std::size_t>(std::stoi(row.at("rank")));
    if (schedule.ranks.size() <= rank)
      schedule.ranks.resize(rank + 1);
    if (!row.at("action").empty())
      schedule.ranks[rank].push_back(row.at("action"));
  });
  demand(name, "cases", all.size());
  return all;
}

plan::ScheduleRequest request_of(const ReferenceSchedule& reference, const std::string& name) {
  plan::ScheduleRequest request;
  request.name = name;
  request.ranks = reference.number("P");
  request.microbatches = reference.number("M");
  request.chunks = reference.number("V");
  return request;
}

std::vector<std::vector<std::string>> cells_of(const plan::Schedule& schedule) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& actions : schedule.ranks)
    rows.push_back(plan::cells(actions));
  return rows;
}

void report_equal(const std::string& name, std::size_t equal, std::size_t all,
                  const std::string& more) {
  fmt::print("compared: {}: {} of {} are equal{}\n", name, equal, all,
             more.empty() ? "" : ", " + more);
  REQUIRE(all > 0);
}

}  // namespace pipewright::test
