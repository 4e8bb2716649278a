#include "closed_forms.hpp"
#include "list_schedule.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

Schedule make_hanayo(int ranks, int microbatches, int waves) {
  check_sizes("hanayo", ranks, microbatches, 2 * waves);
  // With only P in flight, the next unit of P microbatches would wait for the last one of the
  // previous unit.
  const int in_flight = ranks + (ranks + 1) / 2;
  return list_schedule(v_placement(ranks, 2 * waves * ranks), microbatches, in_flight);
}

ScheduleDescriptor schedule::hanayo() {
  return {
      .name = "hanayo",
      .chunks = Chunks::Even,
      .takes = "V = 2W chunks per rank for W waves",
      .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
        return {make_hanayo(r.ranks, r.microbatches, r.chunks / 2)};
      },
      .bubble = {"4(P-1)F/V when V = 2, M = P and B = 2F",
                 [](const ScheduleSizes& s) -> std::optional<double> {
                   if (s.chunks != 2 || s.microbatches != s.ranks || s.backward() != 2 * s.forward)
                     return {};
                   return 4 * (s.ranks - 1) * s.forward / s.chunks;
                 }},
      .activations = {.words = "P + ceil(P/2)",
                      .value =
                          [](const ScheduleSizes& s) {
                            return std::min(s.microbatches, s.ranks + (s.ranks + 1) / 2);
                          },
                      .is_limit = true}};
}

}  // namespace pipewright::plan
