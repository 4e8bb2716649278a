// Ranges of a sweep: either a field with at least one value and not too many, or a rejection.

#include <string>
#include <string_view>

#include "pipewright/sim/scenario/ranges.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace ranges_fuzz {

using namespace pipewright::sim;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(std::string_view bytes) {
  const std::string text(bytes);
  const auto swept = accepted([&] { return parse_swept_field(text); });
  if (!swept)
    return;
  demand(!swept->field.empty() && !swept->values.empty(), "a field has a value");
  demand(swept->values.size() <= 200'000, "values can be counted");
  demand(text.starts_with(swept->field + "="), "the field is the one that was written");
  demand(!expanded(swept->field + "=" + swept->values.front(), true).empty(),
         "a value of the range expands again");
}

const pipewright::fuzz::Reader reader("ranges", try_text);

}  // namespace ranges_fuzz
