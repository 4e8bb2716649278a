#include <fmt/format.h>

#include "parts.hpp"
#include "text/figure_text.hpp"

namespace pipewright::draw {
namespace {

std::string when(int rank, plan::Seconds start, plan::Seconds end) {
  return fmt::format("on rank {}: {} from {} on", rank, time_text(end - start), time_text(start));
}

}  // namespace

std::string tooltip_of(const plan::Span& span) {
  std::string text = fmt::format("{} {}", span.action, when(span.rank, span.start, span.end));
  if (span.shards > plan::Seconds{})
    text += fmt::format(", {} of it in tensor-parallel communication", time_text(span.shards));
  if (span.late > plan::Seconds{})
    text += fmt::format(", {} of that waiting for a late rank", time_text(span.late));
  return text;
}

std::string tooltip_of(const plan::IdleSpan& idle) {
  return fmt::format("{} {}", to_string(idle.cause), when(idle.rank, idle.start, idle.end));
}

}  // namespace pipewright::draw
