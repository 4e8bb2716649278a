// Partitions: every stage has layers and a rank, and every rank a stage.

#include <algorithm>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partition/placement.hpp"
#include "reader.hpp"

namespace partition_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::read_back;

void try_text(std::string_view text) {
  const auto read = read_back(text, partition_from_json);
  if (!read)
    return;
  const auto& [partition, rank_of_stage] = *read;
  demand(stage_count(partition) > 0 && layer_count(partition) >= stage_count(partition),
         "every stage has a layer");
  const int ranks = 1 + *std::max_element(rank_of_stage.begin(), rank_of_stage.end());
  for (const auto& stages : stages_of_rank(rank_of_stage, ranks))
    demand(!stages.empty(), "every rank has a stage");
}

const pipewright::fuzz::Reader reader("partition", try_text);

}  // namespace partition_fuzz
