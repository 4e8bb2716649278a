#include "pipewright/gui/window/fuzzy_match.hpp"

#include <algorithm>

namespace pipewright::gui {
namespace {

constexpr int together = 8;
constexpr int begins_word = 6;
constexpr int begins_text = 4;

bool is_begin_of_word(const QString& text, int at) {
  return at == 0 || !text[at - 1].isLetterOrNumber();
}

/// Finds the best positions of letter `t` and the following ones from position `from` on, with
/// memoization.
struct Search {
  const QString& typed;
  const QString& text;
  std::vector<std::vector<int>> best;  // by letter and position; -1: no match, -2: not computed yet

  int score(int t, int at) {
    int& known = best[static_cast<std::size_t>(t)][static_cast<std::size_t>(at)];
    if (known != -2)
      return known;
    known = -1;
    if (typed[t].toLower() != text[at].toLower())
      return known;
    const int own =
        1 + (is_begin_of_word(text, at) ? begins_word : 0) + (at == 0 ? begins_text : 0);
    if (t + 1 == typed.size())
      return known = own;
    int rest = -1;
    for (int next = at + 1; next < text.size(); ++next)
      if (const int there = score(t + 1, next); there >= 0)
        rest = std::max(rest, there + (next == at + 1 ? together : 0));
    return known = rest < 0 ? -1 : own + rest;
  }
};

}  // namespace

std::optional<FuzzyMatch> fuzzy_match(const QString& typed_words, const QString& whole) {
  const QString typed = QString(typed_words).remove(' ').left(32);
  const QString text = whole.left(160);
  if (typed.isEmpty())
    return FuzzyMatch{};
  Search search{typed, text, {}};
  search.best.assign(static_cast<std::size_t>(typed.size()),
                     std::vector<int>(static_cast<std::size_t>(text.size()), -2));
  FuzzyMatch match{-1, {}};
  int at = -1;
  for (int first = 0; first < text.size(); ++first)
    if (const int score = search.score(0, first); score > match.score) {
      match.score = score;
      at = first;
    }
  if (at < 0)
    return {};
  // Follows the path with the best score.
  for (int t = 0; t < typed.size(); ++t) {
    match.letters.push_back(at);
    if (t + 1 == typed.size())
      break;
    int chosen = -1, most = -1;
    for (int next = at + 1; next < text.size(); ++next)
      if (const int there = search.score(t + 1, next); there >= 0)
        if (const int with = there + (next == at + 1 ? together : 0); with > most) {
          most = with;
          chosen = next;
        }
    at = chosen;
  }
  // Among equal scores, prefers the shorter text.
  match.score = 4 * match.score - static_cast<int>(text.size()) / 4;
  return match;
}

}  // namespace pipewright::gui
