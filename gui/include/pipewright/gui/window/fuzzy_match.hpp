#pragma once

// How well a typed text matches a name, as a value.

#include <QString>
#include <optional>
#include <vector>

namespace pipewright::gui {

struct FuzzyMatch {
  int score = 0;             // greater is better
  std::vector<int> letters;  // positions in the text of the typed letters
};

/// Matches the letters of `typed` in order anywhere in `text`, ignoring case. Adjacent letters and
/// beginnings of words score higher. Returns nothing if a letter is missing.
std::optional<FuzzyMatch> fuzzy_match(const QString& typed, const QString& text);

}  // namespace pipewright::gui
