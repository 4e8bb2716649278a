// Ranges of a sweep: a field with at least one value and not too many, or a refusal.

#include <cstdint>
#include <string>
#include <string_view>

#include "pipewright/sim/ranges.hpp"
#include "promise.hpp"

namespace {

using namespace pipewright::sim;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(const std::string& text) {
  const auto swept = accepted([&] { return parse_swept_field(text); });
  if (!swept)
    return;
  demand(!swept->field.empty() && !swept->values.empty(), "a field has a value");
  demand(swept->values.size() <= 200'000, "values can be counted");
  demand(text.starts_with(swept->field + "="), "the field is the one that was written");
  demand(!expanded(swept->field + "=" + swept->values.front(), true).empty(),
         "an assignment means something");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_text(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
