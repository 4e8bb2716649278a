// Checks that a run with tensor parallelism reports the time of tensor-parallel communication.
#pragma once

#include <nlohmann/json.hpp>

#include "pipewright/plan/timeline/timeline.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

/// A fixed partition, so that measurements do not change it: tensor-parallel ranks of a stage with
/// only an embedding have nothing to communicate.
inline constexpr const char* with_shards_told = "pipeline.partition=[0, 2, 6]";

/// Checks the report, and each action of both timelines whose tensor-parallel ranks communicate.
inline void check_shards_told(const nlohmann::json& report, const plan::Timeline& predicted,
                              const plan::Timeline& measured) {
  for (const char* side : {"predicted", "measured"}) {
    INFO(side);
    const auto& figures = report[side];
    REQUIRE(figures["shards_s"].size() == 2);
    for (const std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
      CHECK(figures["shards_s"][rank] > 0);
      CHECK(figures["shards_s"][rank] < figures["busy_s"][rank]);
    }
  }
  CHECK(report["error_percent"]["shards_s"].size() == 2);
  for (const plan::Timeline* timeline : {&predicted, &measured}) {
    INFO(timeline->name);
    for (const plan::Span& span : timeline->spans) {
      INFO(span.action);
      const std::string kind = plan::kind_of(span.action);
      CHECK((span.shards > plan::Seconds{}) == (kind == "F" || kind == "B"));
      CHECK(span.shards <= span.end - span.start);
      CHECK(span.late <= span.shards);
    }
    // Waiting for another tensor-parallel rank is no work: busy and idle time make up the
    // iteration.
    const auto busy = plan::busy_per_rank(*timeline);
    const auto idle = plan::idle_by_cause(*timeline);
    for (const std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
      plan::Seconds all = busy[rank];
      for (const plan::Seconds cause : idle[rank])
        all += cause;
      CHECK(all.value == Approx(timeline->length.value));
      CHECK(idle[rank][static_cast<std::size_t>(plan::IdleCause::Shards)].value > 0);
    }
  }
}

}  // namespace pipewright::test
