#pragma once

// Scaled-down versions of large models: the large model's config.json with fewer and narrower
// layers.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// Returns the public models whose config.json is built in.
std::vector<std::string> known_folders();

/// Sizes of a scaled-down model.
struct SmallSizes {
  std::optional<int> layers{}, hidden{}, vocabulary{};  // absent: the large model's size
};

/// Returns the large model's config.json with these sizes. Heads, feed-forward width and low ranks
/// shrink with the hidden size; heads keep their channels as long as two of them remain. The name
/// is matched ignoring case, blanks, dashes, dots and underscores. Throws InputError for an unknown
/// name, with the nearest known one, and for impossible sizes.
Json small_config(const std::string& name, const SmallSizes& sizes);

}  // namespace pipewright::plan
