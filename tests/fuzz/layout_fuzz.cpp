// Megatron-LM's layouts: the shortest form reads back as the same stages.

#include <string>
#include <string_view>

#include "pipewright/plan/partitioners/layout.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace layout_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(std::string_view text) {
  const auto layout = accepted([&] { return parse_layout(std::string(text)); });
  if (!layout)
    return;
  demand(parse_layout(to_string(*layout)) == *layout, "reads back as written");
  const auto boundaries = layout_boundaries(*layout);
  demand(boundaries.size() == layout->stages.size() + 1, "there is a boundary after each stage");
  demand(boundaries.back() > 0, "there is a layer");
}

const pipewright::fuzz::Reader reader("layout", try_text);

}  // namespace layout_fuzz
