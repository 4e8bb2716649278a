#include "sim/support/equal_ranks.hpp"

namespace closed_forms_test {

// The bubbles that papers state as formulas, for equal stages, exactly. F, I and W are the times of
// one microbatch on one stage; with V chunks a rank, on one chunk.

using namespace pipewright::plan;
using namespace pipewright::test;

struct Costs {
  double f, i, w;
  double all() const { return f + i + w; }
};
const std::vector<Costs> even_and_odd{{1, 1, 1}, {3, 2, 5}, {10, 12, 8}, {4, 8, 4}};
const std::vector<int> ranks_grid{1, 2, 3, 4, 6, 8, 16};

/// Iteration time beyond the work of one rank, of `per_rank` microbatches and chunks.
double bubble(const Schedule& schedule, const Costs& costs, double per_rank, double transfer = 0) {
  return timed(schedule, costs.f, costs.i, costs.w, transfer).length.value - per_rank * costs.all();
}

/// The same of the longest span of a rank, where ranks do not wait for each other at the step.
double span_bubble(const Schedule& schedule, const Costs& costs, double per_rank,
                   double transfer = 0) {
  return longest_span(timed(schedule, costs.f, costs.i, costs.w, transfer)).value -
         per_rank * costs.all();
}

TEST_CASE("GPipe, 1F1B and DeepSpeed's TrainSchedule: (P - 1)(F + B)", "[sim][schedule]") {
  for (const std::string name : {"gpipe", "1f1b", "deepspeed-train"})
    for (const Costs& costs : even_and_odd)
      for (const int p : ranks_grid)
        for (const int m : {1, 2, 4, 8, 12, 32}) {
          CAPTURE(name, p, m, costs.f);
          REQUIRE(bubble(make(name, p, m), costs, m) == (p - 1) * costs.all());
        }
}

TEST_CASE("1F1B with transfers, P dividing M: ((2P - 2)M/P + 2(P - 2)) c more", "[sim][schedule]") {
  for (const Costs& costs : even_and_odd)
    for (const int p : {2, 3, 4, 8})
      for (const int rounds : {1, 2, 5}) {
        const int m = p * rounds;
        const double c = 0.125;
        CAPTURE(p, m);
        REQUIRE(bubble(make("1f1b", p, m), costs, m, c) ==
                (p - 1) * costs.all() + (2.0 * (p - 1) * m / p + 2 * (p - 2)) * c);
      }
}

TEST_CASE("Interleaved 1F1B, torch's and Megatron's: (P - 1)(F + B)/V, and 2(P V - 1) c more",
          "[sim][schedule]") {
  for (const std::string name : {"interleaved-1f1b", "megatron-interleaved"})
    for (const Costs& costs : even_and_odd)
      for (const int p : {2, 3, 4, 8})
        for (const int v : {2, 4})
          for (const int rounds : {1, 2, 4}) {
            const int m = p * rounds;
            const Schedule schedule = make(name, p, m, v);
            CAPTURE(name, p, m, v);
            REQUIRE(bubble(schedule, costs, m * v) == (p - 1) * costs.all());
            REQUIRE(bubble(schedule, costs, m * v, 0.125) ==
                    (p - 1) * costs.all() + 2 * (p * v - 1) * 0.125);
          }
}

TEST_CASE("Looped breadth-first, M >= P: (P - 1)(F + B)/V", "[sim][schedule]") {
  for (const Costs& costs : even_and_odd)
    for (const int p : ranks_grid)
      for (const int v : {1, 2, 4})
        for (const int m : {p, p + 1, 2 * p, 3 * p + 2}) {
          CAPTURE(p, m, v);
          REQUIRE(bubble(make("looped-bfs", p, m, v), costs, m * v) == (p - 1) * costs.all());
        }
}

TEST_CASE("Interleaved zero bubble, equal times, P dividing M: a third of interleaved 1F1B",
          "[sim][schedule]") {
  for (const int p : {1, 2, 4, 8})
    for (const int v : {2, 4})
      for (const int rounds : {1, 2, 4}) {
        CAPTURE(p, v, rounds);
        REQUIRE(bubble(make("interleaved-zb", p, p * rounds, v), {1, 1, 1}, p * rounds * v) ==
                p - 1);
      }
}

TEST_CASE("ZB-H1: (P - 1)(F + I - W), and 4(P - 1) c more", "[sim][schedule]") {
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{10, 12, 8}, Costs{4, 8, 4}})
    for (const int p : {1, 2, 3, 4, 8})
      for (const int m : {2 * p, 3 * p, 4 * p + 1}) {
        const Schedule schedule = make("zb-h1", p, m);
        CAPTURE(p, m, costs.f);
        REQUIRE(span_bubble(schedule, costs, m) == (p - 1) * (costs.f + costs.i - costs.w));
        REQUIRE(span_bubble(schedule, costs, m, 0.125) ==
                (p - 1) * (costs.f + costs.i - costs.w) + 4 * (p - 1) * 0.125);
      }
}

TEST_CASE("ZB-H2: (P - 1)(F + I - 2W), and 2(P - 1) c more", "[sim][schedule]") {
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{10, 12, 8}, Costs{4, 8, 4}})
    for (const int p : {1, 2, 3, 4, 8})
      for (const int m : {2 * p, 3 * p, 4 * p + 1}) {
        const Schedule schedule = make("zb-h2", p, m);
        CAPTURE(p, m, costs.f);
        REQUIRE(span_bubble(schedule, costs, m) == (p - 1) * (costs.f + costs.i - 2 * costs.w));
        REQUIRE(span_bubble(schedule, costs, m, 0.125) ==
                (p - 1) * (costs.f + costs.i - 2 * costs.w) + 2 * (p - 1) * 0.125);
      }
}

TEST_CASE("Few microbatches, M <= P: (M + P - 1)(F + I) + W for a zero-bubble order",
          "[sim][schedule]") {
  for (const Costs& costs : {Costs{10, 12, 8}, Costs{5, 6, 4}})
    for (const int p : {2, 3, 4, 8})
      for (int m = 1; m <= p; ++m) {
        ScheduleRequest request;
        request.name = "zb-auto";
        request.ranks = p;
        request.microbatches = m;
        request.times = {{costs.f}, {costs.i}, {costs.w}, 0};
        CAPTURE(p, m, costs.f);
        REQUIRE(timed(make_schedule(request), request.times).length.value ==
                (m + p - 1) * (costs.f + costs.i) + costs.w);
      }
}

TEST_CASE("ZB-V, equal times, M >= 2P - 1: no rank idles from its first to its last action",
          "[sim][schedule]") {
  for (const std::string name : {"zbv", "v-zb"})
    for (const int p : ranks_grid)
      for (const int m : {2 * p - 1, 2 * p, 3 * p, 4 * p + 1}) {
        CAPTURE(name, p, m);
        REQUIRE(span_bubble(make(name, p, m), {1, 1, 1}, 2 * m) == 0);
      }
}

// The pair is timed as its two actions, one after the other: F&B = F + B. The formulas count ends
// at different ranks, so they hold for the iteration.
TEST_CASE("DualPipeV: (P - 1)(F&B + B - 3W)", "[sim][schedule]") {
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{2, 2, 2}})
    for (const int p : {1, 2, 3, 4, 8})
      for (const int m : {2 * p, 3 * p, 4 * p}) {
        const double back = costs.i + costs.w;
        CAPTURE(p, m, costs.f);
        REQUIRE(bubble(make("dualpipev", p, m), costs, 2 * m) ==
                (p - 1) * (costs.f + back + back - 3 * costs.w));
      }
}

TEST_CASE("DualPipe: (P/2 - 1)(F&B + B - 3W)", "[sim][schedule]") {
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{2, 2, 2}})
    for (const int p : {2, 4, 6, 8})
      for (const int m : {2 * p, 3 * p, 4 * p}) {
        const double back = costs.i + costs.w;
        CAPTURE(p, m, costs.f);
        REQUIRE(bubble(make("dualpipe", p, m), costs, m) ==
                (p / 2 - 1) * (costs.f + back + back - 3 * costs.w));
      }
}

TEST_CASE("Chimera, forward and backward equally long: a fraction (P - 2)/(2M + P - 2)",
          "[sim][schedule]") {
  for (const int p : {2, 4, 6, 8, 16})
    for (const int units : {1, 2, 3}) {
      const int m = p * units;
      const double length = timed(make("chimera", p, m), 2, 1, 1).length.value;
      CAPTURE(p, m);
      REQUIRE((length - 4 * m) / length == Approx((p - 2.0) / (2 * m + p - 2)).epsilon(1e-12));
    }
}

TEST_CASE("Inference: (P - 1) F/V", "[sim][schedule]") {
  for (const std::string name : {"inference", "deepspeed-inference"})
    for (const int p : ranks_grid)
      for (const int m : {1, 4, 8, 32}) {
        CAPTURE(name, p, m);
        REQUIRE(timed(make(name, p, m), 3, 0, 0).length.value == (m + p - 1) * 3.0);
      }
  REQUIRE(timed(make("inference", 4, 8, 2), 3, 0, 0).length.value == (16 + 3) * 3.0);
}

TEST_CASE("Data parallelism has no bubble", "[sim][schedule]") {
  REQUIRE(timed(make("data-parallel", 4, 8), 1, 1, 1).length.value == 24);
}

TEST_CASE("Makespans at F = I = W per microbatch and rank, over P and M", "[sim][schedule]") {
  struct Row {
    int p, m;
    double one_f_one_b, interleaved, looped, interleaved_zb, zbv, dualpipev;
  };
  for (const Row& row :
       {Row{4, 8, 33, 28.5, 28.5, 25.5, 25.5, 27}, Row{4, 16, 57, 52.5, 52.5, 49.5, 49.5, 51},
        Row{8, 16, 69, 58.5, 58.5, 51.5, 51.5, 55},
        Row{8, 32, 117, 106.5, 106.5, 99.5, 99.5, 103}}) {
    const auto of = [&](const char* name, int chunks) {
      const double part = 1.0 / chunks;
      return timed(make(name, row.p, row.m, chunks), part, part, part).length.value;
    };
    CAPTURE(row.p, row.m);
    CHECK(of("gpipe", 1) == row.one_f_one_b);
    CHECK(of("1f1b", 1) == row.one_f_one_b);
    CHECK(of("interleaved-1f1b", 2) == row.interleaved);
    CHECK(of("looped-bfs", 2) == row.looped);
    CHECK(of("interleaved-zb", 2) == row.interleaved_zb);
    CHECK(of("zbv", 2) == row.zbv);
    CHECK(of("dualpipev", 2) == row.dualpipev);
  }
}

}  // namespace closed_forms_test
