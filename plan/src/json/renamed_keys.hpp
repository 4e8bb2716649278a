#pragma once

// Old names of JSON keys, which files of earlier versions contain. They are read for one version.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// Returns true if keys of the document may have old names: its format is one of this project's.
bool may_have_old_keys(const Json& root);

/// Returns today's name of a key.
std::string current_key(const std::string& key);

/// Gives all keys of a value their current names and returns the pairs `"old" is now "new"`.
std::vector<std::string> rename_old_keys(Json& value);

/// Writes to stderr, once per file, that it contains these old keys.
void report_old_keys(const std::string& file, const std::vector<std::string>& renamed);

}  // namespace pipewright::plan
