#pragma once

// Small models of a large one's kind: its config.json, with fewer layers and narrower.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// Public models whose config.json is known here.
std::vector<std::string> known_folders();

struct SmallSizes {
  std::optional<int> layers{}, hidden{}, vocabulary{};  // none: as the large model has it
};

/// The large model's config.json in these sizes. Heads, feed-forward and ranks shrink with the
/// hidden size; heads keep their channels while two of them are left. Case, blanks, dashes, dots
/// and underscores of the name do not count. Throws InputError for an unknown name, with the
/// nearest known, and for sizes that no such model has.
Json small_config(const std::string& name, const SmallSizes& sizes);

}  // namespace pipewright::plan
