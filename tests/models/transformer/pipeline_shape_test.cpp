#include "pipewright/models/transformer/pipeline_shape.hpp"

#include <algorithm>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "support/catch.hpp"

namespace pipeline_shape_test {

using namespace pipewright::plan;
using namespace pipewright::models;

int chunks_of(const std::string& schedule) {
  return find_schedule(schedule).chunks == Chunks::One ? 1 : 2;
}

TEST_CASE("A rank holds what its actions say, for any number of microbatches",
          "[plan][transformer]") {
  for (const std::string& name : planned_schedules())
    for (const int ranks : {1, 2, 3, 4, 6})
      for (int microbatches = 1; microbatches <= 9 * ranks; ++microbatches) {
        const int chunks = chunks_of(name);
        if (name == "interleaved-1f1b" && microbatches % ranks != 0) {
          CHECK(PipelineShapes().find(name, ranks, microbatches, chunks) == nullptr);
          continue;
        }
        Schedule schedule;
        try {
          schedule = make_schedule({.name = name,
                                    .ranks = ranks,
                                    .microbatches = microbatches,
                                    .chunks = chunks,
                                    .rank_of_stage = {},
                                    .costs = {},
                                    .memory_units = {}});
        } catch (const pipewright::plan::InputError&) {
          CHECK(PipelineShapes().find(name, ranks, microbatches, chunks) == nullptr);
          continue;
        }
        const PipelineShape shape = pipeline_shape(name, ranks, microbatches, chunks);
        const std::vector<int> peaks = peak_activations(schedule);
        CAPTURE(name, ranks, microbatches);
        for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
          int most = 0;
          for (const std::vector<int>& kept : shape.kept[rank])
            most = std::max(most, std::accumulate(kept.begin(), kept.end(), 0));
          CHECK(most == peaks[rank]);
        }
      }
}

TEST_CASE("1F1B holds P - r microbatches, and zbv's ranks have both arms of the V",
          "[plan][transformer]") {
  const PipelineShape plain = pipeline_shape("1f1b", 4, 8, 1);
  CHECK(plain.kept ==
        std::vector<std::vector<std::vector<int>>>{{{4, 0}}, {{3, 0}}, {{2, 0}}, {{1, 0}}});
  CHECK_FALSE(plain.splits_backward);
  const PipelineShape vee = pipeline_shape("zbv", 4, 8, 2);
  CHECK(vee.stages_of_rank == std::vector<std::vector<int>>{{0, 7}, {1, 6}, {2, 5}, {3, 4}});
  CHECK(vee.splits_backward);
}

TEST_CASE("Interleaved stages hold the formula's microbatches, most of the first chunk",
          "[plan][transformer]") {
  // Narayanan et al., arXiv 2104.04473: PV + P - 1 - 2r microbatches of one stage each.
  const PipelineShape shape = pipeline_shape("interleaved-1f1b", 4, 16, 3);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    int most = 0;
    for (const std::vector<int>& kept : shape.kept[rank]) {
      most = std::max(most, std::accumulate(kept.begin(), kept.end(), 0));
      CHECK(std::is_sorted(kept.rbegin(), kept.rend()));
    }
    CHECK(most == 4 * 3 + 3 - 2 * static_cast<int>(rank));
  }
}

}  // namespace pipeline_shape_test
