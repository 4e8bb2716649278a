#pragma once

// Megatron-LM's pipeline layouts: the layers of each stage as a string. `Et*3|(tt|)*29,m|L` has 32
// stages: E is the embedding, t a transformer layer, m a multi-token prediction layer, L the loss.
// `|` ends a stage, `*n` repeats a letter or a group in parentheses, and commas are only for
// readability.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

/// A parsed layout.
struct Layout {
  std::vector<std::string> stages;  // the letters of each stage; a stage may be empty
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Parses a layout. Throws InputError that names the column for an unknown letter, an unclosed
/// group, a repeat of nothing, an E that is not first, an L that is not last, or more than 100,000
/// letters.
Layout parse_layout(const std::string& text);

/// Returns the usual compact form, which `parse_layout` accepts: runs of at least three equal
/// letters and of at least two equal stages are written as repeats.
std::string to_string(const Layout& layout);

/// Returns the number of transformer layers of each stage.
std::vector<int> transformer_layers(const Layout& layout);

/// Returns the stage boundaries, counting each letter as a layer.
std::vector<int> layout_boundaries(const Layout& layout);

/// Returns a letter for each layer by its kind, or nothing if a kind has no letter.
std::optional<std::string> find_layout_letters(const Model& model);

/// Returns a letter for each layer by its kind. Throws InputError for a kind without a letter.
std::string layout_letters(const Model& model);

/// Returns the layout of a model that is divided at these boundaries.
Layout layout_of(const Model& model, const std::vector<int>& boundaries);

/// Returns the layout's boundaries. Throws InputError if its letters do not match the model's
/// layers.
std::vector<int> layout_boundaries(const Layout& layout, const Model& model);

}  // namespace pipewright::plan
