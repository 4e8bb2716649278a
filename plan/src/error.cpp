#include "pipewright/plan/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright::plan {
namespace {

/// Returns the Levenshtein distance: the number of letters to insert, delete or replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const std::string* nearest_to(std::string_view written,
                              const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, written.size() / 2);
  for (const std::string& candidate : candidates) {
    const bool contained = written.size() >= 3 && candidate.find(written) != std::string::npos;
    const std::size_t distance = contained ? 1 : edit_distance(written, candidate);
    if (distance > best_distance || (best != nullptr && distance == best_distance))
      continue;
    best = &candidate;
    best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view written, const std::vector<std::string>& candidates) {
  const std::string* best = nearest_to(written, candidates);
  return best == nullptr ? "" : fmt::format(", did you mean \"{}\"?", *best);
}

std::string listed_lines(const std::vector<std::string>& lines) {
  constexpr std::size_t most = 50;
  const auto shown = std::min(lines.size(), most);
  std::string text = fmt::format(
      "{}", fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), "\n"));
  if (shown < lines.size())
    text += fmt::format("\n… and {} more", lines.size() - shown);
  return text;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace pipewright::plan
