#pragma once

// Limits of the axes of a search: by a scenario's model, by the executor and by the costs at hand.

#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::search {

/// Throws plan::InputError with the first value that cannot be searched, and what would do.
void require_axes(const Draft& draft, const DraftSpace& space);

}  // namespace pipewright::search
