#include "csv_table.hpp"

#include <fmt/format.h>

namespace pipewright::models {
namespace {

std::string without_blanks(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return std::string(text);
}

/// Splits a line of a file at its commas.
CsvLine cut(std::string_view text, int line, bool& open) {
  CsvLine cut{.line = line, .cells = {}};
  std::size_t at = 0;
  while (true) {
    CsvCell cell{.text = {}, .column = static_cast<int>(at) + 1};
    bool quoted = false;
    for (; at < text.size() && (quoted || text[at] != ','); ++at) {
      if (text[at] != '"')
        cell.text += text[at];
      else if (quoted && at + 1 < text.size() && text[at + 1] == '"')
        cell.text += text[at++];
      else
        quoted = !quoted;
    }
    open = open || quoted;
    cell.text = without_blanks(cell.text);
    cut.cells.push_back(std::move(cell));
    if (at >= text.size())
      return cut;
    ++at;
  }
}

}  // namespace

std::vector<CsvLine> csv_lines(std::string_view text, const std::string& name,
                               std::vector<std::string>& faults) {
  std::vector<CsvLine> lines;
  if (text.starts_with("\xef\xbb\xbf"))  // spreadsheets write it (UTF-8 byte order mark)
    text.remove_prefix(3);
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const std::string_view own = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (without_blanks(own).empty())
      continue;
    bool open = false;
    lines.push_back(cut(own, line, open));
    if (open)
      faults.push_back(fmt::format("{}:{}:1: a quote is opened and never closed", name, line));
  }
  return lines;
}

}  // namespace pipewright::models
