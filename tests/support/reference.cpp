#include "support/reference.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "support/catch.hpp"

namespace pipewright::test {
namespace {

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

}  // namespace

std::optional<std::filesystem::path> reference_file(const std::string& name) {
  const auto file = std::filesystem::path(PIPEWRIGHT_REFERENCE_DIR) / name;
  if (std::string(PIPEWRIGHT_REFERENCE_DIR).empty() || !std::filesystem::exists(file)) {
    WARN("skipped: there is no reference file " << name);
    return {};
  }
  return file;
}

void for_each_row(const std::filesystem::path& file,
                  const std::function<void(const ReferenceRow&)>& visit) {
  std::ifstream stream(file);
  REQUIRE(stream);
  std::string line;
  std::getline(stream, line);
  const auto header = split_cells(line);
  while (std::getline(stream, line)) {
    const auto cells = split_cells(line);
    REQUIRE(cells.size() == header.size());
    ReferenceRow row;
    for (std::size_t i = 0; i < header.size(); ++i)
      row[header[i]] = cells[i];
    visit(row);
  }
}

std::vector<ReferenceSchedule> read_reference_schedules(const std::filesystem::path& file,
                                                        const std::vector<std::string>& keys) {
  std::vector<ReferenceSchedule> all;
  std::map<std::string, std::size_t> known;
  for_each_row(file, [&](const ReferenceRow& row) {
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
  REQUIRE_FALSE(all.empty());
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

void report_matches(const std::filesystem::path& file, std::size_t matching, std::size_t all) {
  fmt::print("{}: {} of {} configurations match\n", file.filename().string(), matching, all);
}

}  // namespace pipewright::test
