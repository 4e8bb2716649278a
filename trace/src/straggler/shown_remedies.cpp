#include "pipewright/trace/straggler/shown_remedies.hpp"

#include <algorithm>

namespace pipewright::trace {

std::vector<const Remedy*> shown_remedies(const Remedies& remedies) {
  constexpr std::size_t most = 5;
  std::vector<const Remedy*> told;
  std::vector<std::string> kinds;
  for (const Remedy& own : remedies.all) {
    const bool is_new = std::find(kinds.begin(), kinds.end(), own.kind) == kinds.end();
    if (own.on_learnt.part < min_shown_fraction || (!is_new && told.size() >= most))
      continue;
    kinds.push_back(own.kind);
    told.push_back(&own);
  }
  return told;
}

}  // namespace pipewright::trace
