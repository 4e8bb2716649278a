#include "csv_rows.hpp"

#include "pipewright/plan/json/fused_cell.hpp"

namespace pipewright::plan {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '"'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '"' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> trimmed_parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::vector<std::string_view>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string_view>> rows;
  while (!text.empty()) {
    const auto end = text.find('\n');
    rows.push_back(trimmed_parts(text.substr(0, end), ','));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return rows;
}

std::vector<std::string_view> fused_members(std::string_view cell) {
  constexpr std::string_view tail = fused_cell_end;
  if (!cell.starts_with('(') || !cell.ends_with(tail))
    return {};
  return trimmed_parts(cell.substr(1, cell.size() - 1 - tail.size()), ';');
}

}  // namespace pipewright::plan
