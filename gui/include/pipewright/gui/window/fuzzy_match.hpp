#pragma once

// How well what was typed fits a name, as a value.

#include <QString>
#include <optional>
#include <vector>

namespace pipewright::gui {

struct FuzzyMatch {
  int score = 0;             // greater is better
  std::vector<int> letters;  // of the text, that were typed
};

/// The letters of `typed` in their order anywhere in `text`, case aside; those that stand together
/// or begin a word are worth more. Nothing where one is missing.
std::optional<FuzzyMatch> fuzzy_match(const QString& typed, const QString& text);

}  // namespace pipewright::gui
