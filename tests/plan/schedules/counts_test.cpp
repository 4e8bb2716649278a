#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "support/catch.hpp"

namespace counts_test {

// Numbers of weights, buffers and activations that a Program or Schedule holds at once.

using namespace pipewright::plan;

using Counts = std::vector<int>;

int sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

ScheduleRequest request_of(const std::string& name, int ranks, int microbatches, int group = 0) {
  ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  request.group = group;
  return request;
}

Counts versions(const ScheduleRequest& request) {
  return weight_versions(lower(make_schedule(request), lowering_of(request)));
}

/// Returns the number of receive buffers of all ranks together.
int all_receive_slots(const Schedule& schedule, ReceivePlacement receives) {
  return sum(receive_slots(lower(schedule, {.receives = receives})));
}

TEST_CASE("PipeDream: rank r keeps P - r versions of its weights", "[plan][counts]") {
  CHECK(versions(request_of("pipedream", 4, 8)) == Counts{4, 3, 2, 1});
  CHECK(versions(request_of("pipedream", 1, 8)) == Counts{1});
}

TEST_CASE(
    "PipeDream with few microbatches has fewer versions, because the first forwards share one",
    "[plan][counts]") {
  CHECK(versions(request_of("pipedream", 4, 6)) == Counts{4, 3, 2, 1});
  CHECK(versions(request_of("pipedream", 4, 5)) == Counts{3, 3, 2, 1});
  CHECK(versions(request_of("pipedream", 4, 4)) == Counts{2, 3, 2, 1});
  CHECK(versions(request_of("pipedream", 4, 2)) == Counts{2, 2, 2, 1});
  CHECK(versions(request_of("pipedream", 4, 1)) == Counts{1, 1, 1, 1});
  for (int P = 1; P <= 8; ++P)
    for (int M = 1; M <= 32; ++M) {
      const Counts kept = versions(request_of("pipedream", P, M));
      for (int r = 0; r < P; ++r) {
        CAPTURE(P, M, r);
        REQUIRE(kept[static_cast<std::size_t>(r)] <= std::min(M, P - r));
        if (M >= 2 * (P - r) - 2)
          REQUIRE(kept[static_cast<std::size_t>(r)] == P - r);
      }
    }
}

TEST_CASE("PipeDream-2BW has at most two versions, and one on the last rank", "[plan][counts]") {
  CHECK(versions(request_of("pipedream-2bw", 4, 8)) == Counts{2, 2, 2, 1});
  CHECK(versions(request_of("pipedream-2bw", 4, 8, 8)) == Counts{1, 1, 1, 1});  // a single step
  for (int P = 2; P <= 8; ++P)
    for (int batch = P; batch <= 2 * P; ++batch)
      for (const int batches : {2, 3, 5}) {
        Counts expected(static_cast<std::size_t>(P), 2);
        expected.back() = 1;
        CAPTURE(P, batch, batches);
        REQUIRE(versions(request_of("pipedream-2bw", P, batches * batch, batch)) == expected);
      }
}

TEST_CASE("Steps more often than every P microbatches need more than two versions",
          "[plan][counts]") {
  const auto stepping = [](int every) {
    return weight_versions(lower(make_1f1b(4, 16), {.step_every = every}));
  };
  CHECK(stepping(1) == Counts{4, 3, 2, 1});
  CHECK(stepping(2) == Counts{3, 2, 2, 1});
  CHECK(stepping(4) == Counts{2, 2, 2, 1});
}

TEST_CASE("Every schedule with a flush has one version of its weights", "[plan][counts]") {
  for (const std::string& name : schedule_names())
    if (name.rfind("pipedream", 0) != 0) {
      CAPTURE(name);
      CHECK(versions(request_of(name, 4, 8)) == Counts(4, 1));
    }
}

TEST_CASE("Receive buffers: one per activation or gradient, from its receive to its last use",
          "[plan][counts]") {
  // Rank 0 receives only gradients, each directly before its use. Rank 1 holds the activations of
  // three microbatches, and a gradient.
  CHECK(receive_slots(lower(make_1f1b(4, 8))) == Counts{1, 4, 3, 1});
  CHECK(receive_slots(lower(make_gpipe(4, 8))) == Counts{1, 9, 9, 8});
  CHECK(receive_slots(lower(make_inference(4, 8))) == Counts{0, 1, 1, 1});
  CHECK(receive_slots(lower(make_gpipe(1, 8))) == Counts{0});
  CHECK(receive_slots(lower(parse_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "s.csv"))) == Counts{1, 1});
}

TEST_CASE("Receive buffers: early receives need more", "[plan][counts]") {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    CAPTURE(name);
    CHECK(all_receive_slots(schedule, ReceivePlacement::WithSend) >=
          all_receive_slots(schedule, ReceivePlacement::JustInTime));
  }
  CHECK(receive_slots(lower(make_1f1b(4, 8), {.receives = ReceivePlacement::WithSend})) ==
        Counts{1, 5, 4, 2});
}

TEST_CASE("Receive buffers: one pool per rank needs fewer than one buffer per stage and microbatch",
          "[plan][counts]") {
  // That would be 30 M for 16 stages: 15 of them send activations, and 15 gradients.
  for (const int M : {4, 8, 16, 32})
    for (const auto receives : {ReceivePlacement::JustInTime, ReceivePlacement::WithSend}) {
      const int interleaved = all_receive_slots(make_interleaved_1f1b(4, M, 4), receives);
      const int zbv = all_receive_slots(make_zbv(4, M), receives);
      fmt::print("receive buffers, P 4, M {}, receives {}: interleaved-1f1b of V 4: {}, zbv: {}\n",
                 M, receives == ReceivePlacement::WithSend ? "early" : "in time", interleaved, zbv);
      CHECK(interleaved <= 69);
      CHECK(zbv <= 33);
    }
  CHECK(receive_slots(lower(make_interleaved_1f1b(4, 8, 4))) == Counts{13, 18, 16, 14});
  CHECK(receive_slots(lower(make_zbv(4, 8))) == Counts{1, 10, 11, 7});
}

TEST_CASE("Receive buffers: the number matches a count over the list", "[plan][counts]") {
  for (const std::string& name : schedule_names())
    for (const int M : {8, 12}) {
      const Program program = lower(make_schedule(name, 4, M));
      Counts counted;
      for (const auto& list : program.ranks) {
        int most = 0;
        for (std::size_t now = 0; now < list.size(); ++now) {
          int held = 0;
          for (std::size_t at = 0; at <= now; ++at) {
            const auto uses = [&](const Instruction& i) {
              return is_compute(i.kind) && i.stage == list[at].stage &&
                     i.microbatch == list[at].microbatch;
            };
            held += is_receive(list[at].kind) &&
                    std::any_of(list.begin() + static_cast<std::ptrdiff_t>(now), list.end(), uses);
          }
          most = std::max(most, held);
        }
        counted.push_back(most);
      }
      CAPTURE(name, M);
      CHECK(receive_slots(program) == counted);
    }
}

TEST_CASE("Buffer slots of a stage equal its activations if it holds nothing else",
          "[plan][counts]") {
  CHECK(slot_counts(lower(make_1f1b(4, 8))) == Counts{4, 3, 2, 1});
  CHECK(slot_counts(lower(make_gpipe(4, 8))) == Counts{8, 8, 8, 8});
  CHECK(slot_counts(lower(make_zbv(4, 8))) == Counts{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(slot_counts(lower(make_inference(4, 8))) == Counts{1, 1, 1, 1});
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    const Program program = lower(schedule);
    if (program.placement.is_bidirectional() || is_forward_only(schedule) ||
        stage_count(program) != 4)
      continue;
    CAPTURE(name);
    CHECK(slot_counts(program) == peak_activations(schedule));
  }
}

TEST_CASE("Memory units: a forward holds two until its input gradient, then one",
          "[plan][counts]") {
  CHECK(peak_memory_units(parse_csv("0F0,0F1,0I0,0F2,0W0,0I1,0W1,0B2\n", "s.csv")) == Counts{5});
  CHECK(peak_memory_units(make_1f1b(4, 8)) == Counts{8, 6, 4, 2});
  CHECK(peak_memory_units(make_zbv(4, 8)) == Counts{16, 16, 16, 16});
}

TEST_CASE("Memory units: ZB-H1 holds (P - r) whole and r half activations, ZB-H2 about twice that",
          "[plan][counts]") {
  for (const int P : {1, 2, 4, 8})
    for (const int M : {16, 32}) {
      Counts h1, h2;
      for (int r = 0; r < P; ++r) {
        h1.push_back(2 * (P - r) + r);
        h2.push_back(2 * (2 * (P - r) - 1) + 2 * r);
      }
      CAPTURE(P, M);
      CHECK(peak_memory_units(make_zb_h1(P, M)) == h1);
      CHECK(peak_memory_units(make_zb_h2(P, M)) == h2);
    }
}

TEST_CASE("Memory units: between one and two per activation", "[plan][counts]") {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    const Counts units = peak_memory_units(schedule), peaks = peak_activations(schedule);
    for (std::size_t rank = 0; rank < units.size(); ++rank) {
      CAPTURE(name, rank);
      CHECK(units[rank] <= 2 * peaks[rank]);
      CHECK(units[rank] >= peaks[rank]);
    }
  }
}

TEST_CASE("An inference keeps only the current forward", "[plan][counts]") {
  CHECK(peak_activations(make_inference(2, 8)) == Counts{1, 1});
  CHECK(peak_memory_units(make_inference(2, 8)) == Counts{2, 2});
  CHECK(peak_memory_units(parse_csv("0F0\n\n", "s.csv")) == Counts{2, 0});
}

}  // namespace counts_test
