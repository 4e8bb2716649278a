#pragma once

// Megatron's pipeline layouts: which layers each stage holds, as a string. `Et*3|(tt|)*29,m|L` are
// 32 stages: E the embedding, t a transformer layer, m a multi-token prediction, L the loss; `|`
// ends a stage, `*n` repeats a letter or a group in parentheses, and commas only please the eye.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

struct Layout {
  std::vector<std::string> stages;  // the letters of each; a stage may be empty
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Throws InputError that names the column: an unknown letter, a group without end, a repeat of
/// nothing, E that is not the first or L that is not the last of all, more than 100,000 letters.
Layout parse_layout(const std::string& text);

/// The shortest usual form: runs of three and more letters and of two and more equal stages are
/// written as repeats. `parse_layout` reads it back.
std::string to_string(const Layout& layout);

/// How many transformer layers each stage has.
std::vector<int> transformer_layers(const Layout& layout);

/// The stages' borders, each letter being a layer.
std::vector<int> layout_boundaries(const Layout& layout);

/// A letter for each layer by its kind; nothing when a kind has none.
std::optional<std::string> find_layout_letters(const Model& model);

/// The same; throws InputError for a kind that has none.
std::string layout_letters(const Model& model);

/// The stages of a model between boundaries.
Layout layout_of(const Model& model, const std::vector<int>& boundaries);

/// The layout's boundaries; throws InputError when its letters are not the model's layers.
std::vector<int> layout_boundaries(const Layout& layout, const Model& model);

}  // namespace pipewright::plan
