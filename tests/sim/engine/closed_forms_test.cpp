#include <map>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "sim/support/equal_ranks.hpp"

namespace closed_forms_test {

// The bubbles that papers state as formulas, for equal stages, exactly. F, I and W are the times of
// one microbatch on one stage; with V chunks per rank, on one chunk.

using namespace pipewright::plan;
using namespace pipewright::test;

struct Costs {
  double f, i, w;
  double all() const { return f + i + w; }
};
const std::vector<Costs> even_and_odd{{1, 1, 1}, {3, 2, 5}, {10, 12, 8}, {4, 8, 4}};
const std::vector<int> ranks_grid{1, 2, 3, 4, 6, 8, 16};

/// Visits a grid of sizes; searches are slow, so theirs is small.
template <class Visit>
void for_each_size(const ScheduleDescriptor& entry, const Visit& visit) {
  const std::map<Chunks, std::vector<int>> chunks{
      {Chunks::One, {1}}, {Chunks::Two, {2}}, {Chunks::Even, {2, 4}}, {Chunks::Any, {1, 2, 3}}};
  const bool few = entry.orders_by_times;
  for (const Costs& costs : {Costs{1, 1, 1}, {3, 2, 5}, {10, 12, 8}, {4, 8, 4}, {4, 2, 2}})
    for (const int p : few ? std::vector{1, 2, 3, 4, 6} : ranks_grid)
      for (const int m : few ? std::vector{1, 4, 8, 12} : std::vector{1, 2, 4, 5, 8, 12, 16, 32})
        for (const int v : chunks.at(entry.chunks)) {
          ScheduleRequest request;
          request.name = entry.name;
          request.ranks = p;
          request.microbatches = m;
          request.chunks = v;
          request.costs = equal_costs({costs.f}, {costs.i}, {costs.w});
          try {
            visit(request, costs, make_schedule(request));
          } catch (const InputError&) {
            // The schedule does not support these sizes.
          }
        }
}

/// The number of figures of a form that were checked.
struct Checked {
  int figures = 0;

  void check(const ClosedForm& form, const ScheduleSizes& sizes, double found) {
    const auto said = form.value ? form.value(sizes) : std::nullopt;
    if (!said)
      return;
    ++figures;
    if (form.is_limit)
      REQUIRE(found <= *said + 1e-9);
    else
      REQUIRE(found == Approx(*said).epsilon(1e-12).margin(1e-9));
  }
};

TEST_CASE("Each schedule has the bubble and the activations that it declares", "[sim][schedule]") {
  for (const ScheduleDescriptor& entry : schedules()) {
    Checked bubbles, activations;
    for_each_size(
        entry, [&](const ScheduleRequest& request, const Costs& costs, const Schedule& schedule) {
          const auto v = static_cast<double>(request.chunks);
          const ScheduleSizes sizes{request.ranks, request.microbatches, request.chunks,
                                    costs.f * v,   costs.i * v,          costs.w * v};
          CAPTURE(entry.name, sizes.ranks, sizes.microbatches, sizes.chunks, costs.f, costs.w);
          const auto timeline = timed(schedule, costs.f, costs.i, costs.w);
          const double length =
              entry.bubble_is_of_span ? longest_span(timeline).value : timeline.length.value;
          const double work =
              request.microbatches * v * (entry.is_forward_only ? costs.f : costs.all());
          bubbles.check(entry.bubble, sizes, length - work);
          const auto peaks = peak_activations(schedule);
          activations.check(entry.activations, sizes,
                            *std::max_element(peaks.begin(), peaks.end()) / v);
        });
    CAPTURE(entry.name);
    CHECK_FALSE(entry.bubble.words.empty());
    CHECK_FALSE(entry.activations.words.empty());
    CHECK((bubbles.figures > 0) == (entry.bubble.value != nullptr));
    CHECK((activations.figures > 0) == (entry.activations.value != nullptr));
  }
}

/// Returns the iteration time in addition to the work of one rank, with `per_rank` microbatches and
/// chunks.
double bubble(const Schedule& schedule, const Costs& costs, double per_rank, double transfer = 0) {
  return timed(schedule, costs.f, costs.i, costs.w, transfer).length.value - per_rank * costs.all();
}

/// Returns the same for the longest span of a rank, if ranks do not wait for each other at the
/// step.
double span_bubble(const Schedule& schedule, const Costs& costs, double per_rank,
                   double transfer = 0) {
  return longest_span(timed(schedule, costs.f, costs.i, costs.w, transfer)).value -
         per_rank * costs.all();
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
        request.costs = equal_costs({costs.f}, {costs.i}, {costs.w});
        CAPTURE(p, m, costs.f);
        REQUIRE(timed(make_schedule(request), request.costs).length.value ==
                (m + p - 1) * (costs.f + costs.i) + costs.w);
      }
}

TEST_CASE("Makespans at F = I = W per microbatch and rank, for each P and M", "[sim][schedule]") {
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
