#include "pipewright/plan/timeline/spans_by_action.hpp"

#include <algorithm>

namespace pipewright::plan {

SpansByAction spans_by_action(const Timeline& timeline) {
  SpansByAction spans;
  for (const Span& span : timeline.spans)
    spans[{span.rank, span.action}].push_back(&span);
  for (auto& [action, all] : spans)
    std::stable_sort(all.begin(), all.end(),
                     [](const Span* a, const Span* b) { return a->start < b->start; });
  return spans;
}

}  // namespace pipewright::plan
