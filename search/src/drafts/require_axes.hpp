#pragma once

// Checks the axes of a search against a scenario's model, the executor and the available costs.

#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::search {

/// Throws plan::InputError with the first value that cannot be searched, and a valid alternative.
void require_axes(const Draft& draft, const DraftSpace& space);

}  // namespace pipewright::search
