// Placements: every stage has one rank, and the stages of the ranks read back as written.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/partition/placement.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace placement_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

std::string written(const std::vector<int>& rank_of_stage) {
  std::string text;
  for (std::size_t stage = 0; stage < rank_of_stage.size(); ++stage)
    text += (text.empty() ? "" : ", ") + std::to_string(rank_of_stage[stage]) + ":[" +
            std::to_string(stage) + "]";
  return text;
}

void try_text(std::string_view text) {
  const auto rank_of_stage = accepted([&] { return parse_placement(text); });
  if (!rank_of_stage)
    return;
  demand(!rank_of_stage->empty(), "there is a stage");
  demand(
      std::all_of(rank_of_stage->begin(), rank_of_stage->end(), [](int rank) { return rank >= 0; }),
      "every stage has a rank");
  demand(parse_placement(written(*rank_of_stage)) == *rank_of_stage, "reads back as written");
  demand(text.find('\0') == std::string_view::npos, "text after a null character is not ignored");
}

const pipewright::fuzz::Reader reader("placement", try_text);

}  // namespace placement_fuzz
