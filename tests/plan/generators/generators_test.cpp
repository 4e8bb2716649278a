#include "pipewright/plan/generators/generators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace generators_test {

// Checks the sizes, bubbles and memory that generators.hpp states for every generator.

using namespace pipewright::plan;
using pipewright::test::error_of;

/// P, M and V.
struct Sizes {
  int P = 0;
  int M = 0;
  int V = 0;
};

ScheduleRequest request_of(const std::string& name, const Sizes& sizes, int group = 0) {
  ScheduleRequest request;
  request.name = name;
  request.ranks = sizes.P;
  request.microbatches = sizes.M;
  request.chunks = sizes.V;
  request.group = group;
  return request;
}

using Visit = std::function<void(const Sizes&, const Schedule&)>;

/// Calls `visit` for all sizes of the grid that the schedule accepts. Returns their number.
int for_each_size(const std::string& name, const Visit& visit) {
  int accepted = 0;
  for (const int P : {1, 2, 3, 4, 6, 8, 16})
    for (const int M : {1, 2, 4, 6, 8, 12, 16, 32, 64})
      for (const int V : {1, 2, 4}) {
        Schedule schedule;
        try {
          schedule = make_schedule(request_of(name, {P, M, V}));
        } catch (const InputError&) {
          continue;
        }
        ++accepted;
        CAPTURE(name, P, M, V);
        visit({P, M, V}, schedule);
      }
  REQUIRE(accepted >= 15);  // no schedule accepts fewer
  return accepted;
}

/// Returns `peak` of each rank.
std::vector<int> on_each_rank(int ranks, const std::function<int(int)>& peak) {
  std::vector<int> peaks;
  for (int rank = 0; rank < ranks; ++rank)
    peaks.push_back(peak(rank));
  return peaks;
}

/// Times of a microbatch on one stage, and of a transfer between ranks.
struct Costs {
  int forward = 1;
  int input_gradient = 1;
  int weight_gradient = 1;
  int transfer = 0;
  int backward() const { return input_gradient + weight_gradient; }
};

/// Idle time of the ranks.
struct Bubbles {
  int whole = 0;         // from the earliest start to the latest end of all ranks
  int longest_span = 0;  // of the rank with the longest time from its first start to its last end
};

/// Runs every rank's list in order; a fused pair starts together and takes as long as both.
class Clock {
 public:
  Clock(const Schedule& schedule, const Costs& costs)
      : schedule_(schedule), costs_(costs), placement_(placement_of(schedule)) {}

  Bubbles bubbles() {
    const auto ranks = schedule_.ranks.size();
    std::vector<std::size_t> next(ranks, 0);
    std::vector<int> free_at(ranks, 0), first(ranks, -1), work(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        while (next[rank] < schedule_.ranks[rank].size()) {
          const Action* const unit = &schedule_.ranks[rank][next[rank]];
          const std::size_t count = unit->fused_with_next ? 2 : 1;
          int start = free_at[rank], length = 0;
          bool ready = true;
          for (std::size_t i = 0; i < count; ++i) {
            ready = ready && is_ready(unit[i], static_cast<int>(rank), start);
            length += duration(unit[i].kind);
          }
          if (!ready)
            break;
          for (std::size_t i = 0; i < count; ++i)
            end_of(unit[i]) = start + length;
          if (first[rank] < 0)
            first[rank] = start;
          free_at[rank] = start + length;
          work[rank] += length;
          next[rank] += count;
          moved = true;
        }
    }
    Bubbles bubbles;
    const int end = *std::max_element(free_at.begin(), free_at.end());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      REQUIRE(next[rank] == schedule_.ranks[rank].size());
      bubbles.whole = std::max(bubbles.whole, end - work[rank]);
      bubbles.longest_span =
          std::max(bubbles.longest_span, free_at[rank] - first[rank] - work[rank]);
    }
    return bubbles;
  }

 private:
  using Key = std::tuple<bool, int, int>;  // forward or not, stage, microbatch

  int duration(ActionKind kind) const {
    switch (kind) {
      case ActionKind::Forward:
      case ActionKind::Recompute:
        return costs_.forward;
      case ActionKind::Backward:
        return costs_.backward();
      case ActionKind::InputGradient:
        return costs_.input_gradient;
      case ActionKind::WeightGradient:
        return costs_.weight_gradient;
    }
    return 0;
  }

  int& end_of(const Action& action) {
    if (action.kind == ActionKind::WeightGradient)
      return ignored_;
    return ends_[{action.kind == ActionKind::Forward, action.stage, action.microbatch}];
  }

  /// Moves `start` to the time when the data from the previous or next stage is available.
  bool is_ready(const Action& action, int rank, int& start) const {
    const bool forward = action.kind == ActionKind::Forward;
    const int source = forward ? action.stage - 1 : action.stage + 1;
    if (action.kind == ActionKind::WeightGradient || source < 0 ||
        source == placement_.stage_count())
      return true;
    const auto found = ends_.find({forward, source, action.microbatch});
    if (found == ends_.end())
      return false;
    const bool crosses = placement_.rank_of(source, action.microbatch) != rank;
    start = std::max(start, found->second + (crosses ? costs_.transfer : 0));
    return true;
  }

  const Schedule& schedule_;
  const Costs costs_;
  const Placement placement_;
  std::map<Key, int> ends_;
  int ignored_ = 0;
};

Bubbles bubbles_of(const Schedule& schedule, const Costs& costs) {
  return Clock(schedule, costs).bubbles();
}

std::string refusal(const std::string& name, const Sizes& sizes, int group = 0) {
  return error_of([&] { make_schedule(request_of(name, sizes, group)); });
}

/// Returns the sizes at the end of an error message: "8 or 10", "8 and 10", "8".
std::vector<int> named_in(const std::string& refusal) {
  std::vector<int> numbers;
  std::string digits;
  for (const char c : refusal.substr(refusal.rfind(": ") + 2) + " ")
    if (c >= '0' && c <= '9') {
      digits += c;
    } else if (!digits.empty()) {
      numbers.push_back(std::stoi(digits));
      digits.clear();
    }
  return numbers;
}

TEST_CASE("Every schedule is valid in all sizes that it accepts, with every action once",
          "[plan][generators]") {
  // Number of accepted sizes, out of 63 pairs of P and M and three V, for schedules with rules.
  const std::map<std::string, int> fewer{{"interleaved-1f1b", 174}, {"megatron-interleaved", 131},
                                         {"interleaved-zb", 174},   {"dualpipev", 35},
                                         {"dualpipe", 21},          {"chimera", 40},
                                         {"pipedream-2bw", 45}};
  const std::map<Chunks, int> all{
      {Chunks::One, 63}, {Chunks::Two, 63}, {Chunks::Even, 126}, {Chunks::Any, 189}};
  for (const ScheduleDescriptor& entry : schedules()) {
    const std::string& name = entry.name;
    CAPTURE(name);
    const int accepted = fewer.contains(name) ? fewer.at(name) : all.at(entry.chunks);
    CHECK(accepted == for_each_size(name, [&](const Sizes& s, const Schedule& schedule) {
            REQUIRE(error_of([&] { validate(schedule); }) == "no error");
            REQUIRE(static_cast<int>(schedule.ranks.size()) == s.P);
            const int stages = stage_count(request_of(name, s));
            REQUIRE(stage_count(schedule) == stages);
            std::map<std::tuple<ActionKind, int, int>, int> times;
            for (const auto& actions : schedule.ranks)
              for (const Action& a : actions)
                ++times[{a.kind, a.stage, a.microbatch}];
            const auto pairs = static_cast<std::size_t>(stages * schedule.microbatches);
            std::size_t forwards = 0, inputs = 0, weights = 0;
            for (const auto& [action, count] : times) {
              REQUIRE(count == 1);
              forwards += std::get<0>(action) == ActionKind::Forward;
              inputs += makes_input_gradient(std::get<0>(action));
              weights += makes_weight_gradient(std::get<0>(action));
            }
            const bool learns = !is_forward_only(schedule);
            REQUIRE(forwards == pairs);
            REQUIRE(inputs == (learns ? pairs : 0));
            REQUIRE(weights == (learns ? pairs : 0));
          }));
  }
}

TEST_CASE("Activations kept, exactly: one stage per rank", "[plan][generators]") {
  for_each_size("gpipe", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int) { return s.M; }));
  });
  for (const char* name : {"1f1b", "pipedream", "pipedream-2bw", "deepspeed-train"})
    for_each_size(name, [](const Sizes& s, const Schedule& schedule) {
      REQUIRE(peak_activations(schedule) ==
              on_each_rank(s.P, [&](int r) { return std::min(s.M, s.P - r); }));
    });
  for_each_size("data-parallel", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [](int) { return 1; }));
  });
}

TEST_CASE("Activations kept, exactly: interleaved", "[plan][generators]") {
  for_each_size("interleaved-1f1b", [](const Sizes& s, const Schedule& schedule) {
    const int round = s.M / std::max(1, s.M / s.P);
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int r) {
              return s.M % s.P == 0
                         ? std::min(s.M * s.V, s.P * s.V + s.P - 1 - 2 * r)
                         : std::min(s.M * s.V, (s.V - 1) * round + 2 * (s.P - 1 - r) + 1);
            }));
  });
  for_each_size("looped-bfs", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int) { return s.M * s.V; }));
  });
  for_each_size("interleaved-zb", [](const Sizes& s, const Schedule& schedule) {
    if (s.M % s.P == 0)
      REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int) { return s.P * s.V; }));
  });
}

TEST_CASE("Activations kept, exactly: Megatron-LM's groups", "[plan][generators]") {
  int groups = 0;
  for (const int P : {2, 3, 4, 8})
    for (const int M : {4, 8, 12, 17, 32})
      for (const int V : {2, 3, 4})
        for (int group = P; group <= M; ++group) {
          Schedule schedule;
          try {
            schedule = make_megatron_interleaved(P, M, V, group);
          } catch (const InputError&) {
            continue;
          }
          ++groups;
          CAPTURE(P, M, V, group);
          REQUIRE(error_of([&] { validate(schedule); }) == "no error");
          REQUIRE(peak_activations(schedule) == on_each_rank(P, [&](int r) {
                    return std::min(M * V, (V - 1) * group + 2 * (P - 1 - r) + 1);
                  }));
        }
  CHECK(groups > 300);
  CHECK(make_megatron_interleaved(4, 8, 1) == make_1f1b(4, 8));
}

TEST_CASE("Activations kept, exactly: split backwards, until the weight gradient",
          "[plan][generators]") {
  for_each_size("zb-h1", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) ==
            on_each_rank(s.P, [&](int) { return std::min(s.M, s.P); }));
  });
  for_each_size("zb-h2", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) ==
            on_each_rank(s.P, [&](int) { return std::min(s.M, 2 * s.P - 1); }));
  });
  for_each_size("zbv", [](const Sizes& s, const Schedule& schedule) {
    const auto full = on_each_rank(s.P, [&](int) { return 2 * s.P; });
    if (s.M >= 2 * s.P - 1)
      REQUIRE(peak_activations(schedule) == full);
    else
      REQUIRE(peak_activations(schedule) < full);
  });
}

TEST_CASE("Activations kept, exactly: both directions", "[plan][generators]") {
  for_each_size("dualpipev", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int) { return 2 * s.P + 1; }));
  });
  for_each_size("dualpipe", [](const Sizes& s, const Schedule& schedule) {
    REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int) { return s.P + 1; }));
  });
  for_each_size("chimera", [](const Sizes& s, const Schedule& schedule) {
    // The outer ranks keep the fewest, the middle ones the most.
    if (s.M >= s.P)
      REQUIRE(peak_activations(schedule) == on_each_rank(s.P, [&](int r) {
                return std::min(s.P, s.P / 2 + 1 + std::min(r, s.P - 1 - r));
              }));
  });
}

TEST_CASE("Hanayo has at most 3P/2 microbatches in flight", "[plan][generators]") {
  for_each_size("hanayo", [](const Sizes& s, const Schedule& schedule) {
    for (const int peak : peak_activations(schedule))
      REQUIRE(peak <= s.V * std::min(s.M, s.P + (s.P + 1) / 2));
  });
  // Later ranks keep more than in 1F1B, because a wave passes them twice.
  CHECK(peak_activations(make_hanayo(4, 8, 1)) == std::vector<int>{7, 8, 9, 9});
}

TEST_CASE("Bubbles: (P - 1)(F + B) for one stage per rank", "[plan][generators]") {
  const Costs costs{3, 2, 5, 0};
  for (const char* name : {"gpipe", "1f1b", "pipedream", "pipedream-2bw", "deepspeed-train"})
    for_each_size(name, [&](const Sizes& s, const Schedule& schedule) {
      REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * (3 + 7));
    });
}

TEST_CASE("Bubbles: V chunks in a loop divide it by V", "[plan][generators]") {
  // Costs are those of a chunk; F + B of a rank is V times that.
  const Costs costs{3, 2, 5, 0};
  for (const char* name : {"interleaved-1f1b", "megatron-interleaved"})
    for_each_size(name, [&](const Sizes& s, const Schedule& schedule) {
      if (s.M % s.P == 0)
        REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * (3 + 7));
    });
  for_each_size("looped-bfs", [&](const Sizes& s, const Schedule& schedule) {
    if (s.M >= s.P || s.V == 1)
      REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * (3 + 7));
    else
      REQUIRE(bubbles_of(schedule, costs).whole > (s.P - 1) * (3 + 7));
  });
  for_each_size("inference", [&](const Sizes& s, const Schedule& schedule) {
    if (s.M % s.P == 0 || s.V == 1)
      REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * 3);
    else
      REQUIRE(bubbles_of(schedule, costs).whole > (s.P - 1) * 3);
  });
  for_each_size("interleaved-zb", [&](const Sizes& s, const Schedule& schedule) {
    if (s.M % s.P == 0)  // a third of (F + I + W)(P - 1), for F = I = W
      REQUIRE(bubbles_of(schedule, {4, 4, 4, 0}).whole == (s.P - 1) * 4);
  });
}

TEST_CASE("Bubbles: ZB-H1 and ZB-H2", "[plan][generators]") {
  for (const Costs& costs :
       {Costs{10, 12, 8}, Costs{5, 6, 4}, Costs{4, 8, 4}, Costs{1, 1, 1}, Costs{5, 5, 4}}) {
    const int F = costs.forward, I = costs.input_gradient, W = costs.weight_gradient;
    for_each_size("zb-h1", [&](const Sizes& s, const Schedule& schedule) {
      if (s.M >= s.P)
        REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * (F + I - W));
      if (s.M > s.P && W >= 4)
        REQUIRE(bubbles_of(schedule, {F, I, W, 1}).whole == (s.P - 1) * (F + I - W + 4));
    });
    for_each_size("zb-h2", [&](const Sizes& s, const Schedule& schedule) {
      if (s.M < 2 * s.P - 1)
        return;
      REQUIRE(bubbles_of(schedule, costs).longest_span == (s.P - 1) * (F + I - 2 * W));
      REQUIRE(bubbles_of(schedule, {F, I, W, 1}).longest_span == (s.P - 1) * (F + I - 2 * W + 2));
    });
  }
}

TEST_CASE("Bubbles: none in a V with equal times", "[plan][generators]") {
  for (const char* name : {"zbv", "v-zb"})
    for_each_size(name, [](const Sizes& s, const Schedule& schedule) {
      const bool few = s.M < 2 * s.P - 1;
      REQUIRE((bubbles_of(schedule, {1, 1, 1, 0}).longest_span > 0) == few);
    });
}

TEST_CASE("Bubbles: DualPipe and DualPipeV", "[plan][generators]") {
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{2, 2, 1}, Costs{5, 5, 4}, Costs{3, 3, 2}}) {
    const int fused = costs.forward + costs.backward();
    const int hop = fused + costs.backward() - 3 * costs.weight_gradient;
    for_each_size("dualpipev", [&](const Sizes& s, const Schedule& schedule) {
      REQUIRE(bubbles_of(schedule, costs).whole == (s.P - 1) * hop);
    });
    for_each_size("dualpipe", [&](const Sizes& s, const Schedule& schedule) {
      REQUIRE(bubbles_of(schedule, costs).whole == (s.P / 2 - 1) * hop);
    });
  }
}

TEST_CASE("Bubbles: Chimera's fraction is (P - 2)/(2M + P - 2) when units are full",
          "[plan][generators]") {
  for_each_size("chimera", [](const Sizes& s, const Schedule& schedule) {
    if (s.M < s.P)
      return;
    // F = B = 2. A rank works for 4M in all, so the fraction corresponds to a bubble of 2(P - 2).
    const int bubble = bubbles_of(schedule, {2, 1, 1, 0}).whole;
    if (s.M % s.P == 0)
      REQUIRE(bubble == 2 * (s.P - 2));
    else
      REQUIRE(bubble > 2 * (s.P - 2));
  });
}

TEST_CASE("Bubbles: Hanayo's fraction is at most the paper's (2P - 2)/(3PW + P - 1) at M = P",
          "[plan][generators]") {
  for_each_size("hanayo", [](const Sizes& s, const Schedule& schedule) {
    const int bubble = bubbles_of(schedule, {1, 1, 1, 0}).whole;
    const int waves = s.V / 2, work = 3 * s.M * s.V;
    const double fraction = bubble / static_cast<double>(bubble + work);
    const double paper = (2.0 * s.P - 2) / (3.0 * s.P * waves + s.P - 1);
    if (s.M == s.P)
      REQUIRE(fraction <= Approx(paper));
  });
}

TEST_CASE("Rejections: every schedule needs a rank, a microbatch, and not too many",
          "[plan][generators]") {
  for (const std::string& name : schedule_names()) {
    CHECK(refusal(name, {0, 8, 0}) == name + ": 0 ranks asked for, the least is 1");
    CHECK(refusal(name, {4, -1, 0}) == name + ": -1 microbatches asked for, the least is 1");
    const std::string many = refusal(name, {100'000, 100'000, 0});
    CHECK(many.substr(0, many.find(" and ")) == name + ": 100000 ranks, 100000 microbatches");
    CHECK(many.substr(many.find(" have ")) == " have more than 100000000 actions");
  }
}

TEST_CASE("Rejections: numbers of chunks per rank", "[plan][generators]") {
  CHECK(refusal("gpipe", {4, 8, 2}) ==
        "gpipe: 2 chunks per rank asked for, but it has 1; these take more: interleaved-1f1b, "
        "megatron-interleaved, group-interleaved-1f1b, looped-bfs, interleaved-zb or inference");
  CHECK(refusal("zbv", {4, 8, 1}) == "zbv: 1 chunks per rank asked for, but it has 2, in a V");
  CHECK(refusal("zbv", {4, 8, -1}) == "zbv: -1 chunks per rank asked for, but the least is 2");
  CHECK(refusal("looped-bfs", {4, 8, -1}) ==
        "looped-bfs: -1 chunks per rank asked for, but the least is 1");
  CHECK(refusal("hanayo", {4, 8, 3}) ==
        "hanayo: 3 chunks per rank asked for, but every wave has 2: 2 or 4");
  CHECK(refusal("hanayo", {4, 8, 1}) ==
        "hanayo: 1 chunks per rank asked for, but every wave has 2: 2");
}

TEST_CASE("Rejections: rounds that cannot be equal", "[plan][generators]") {
  CHECK(refusal("interleaved-1f1b", {4, 9, 2}) ==
        "interleaved-1f1b: 9 microbatches cannot be cut into 2 equal rounds (there is one round "
        "for every 4 microbatches): the nearest numbers that can are 8 and 10");
  CHECK(refusal("interleaved-zb", {8, 17, 2}) ==
        "interleaved-zb: 17 microbatches cannot be cut into 2 equal rounds (there is one round for "
        "every 8 microbatches): the nearest numbers that can are 16 and 18");
}

TEST_CASE("Rejections: Megatron-LM's groups", "[plan][generators]") {
  CHECK(refusal("megatron-interleaved", {4, 2, 2}) ==
        "megatron-interleaved: 2 microbatches asked for, but 4 ranks need at least as many: 4");
  CHECK(refusal("megatron-interleaved", {4, 6, 2}) ==
        "megatron-interleaved: 6 microbatches in groups of 4 leave a last group of 2, less than "
        "the 4 ranks: the nearest group that fits is 6");
  CHECK(refusal("megatron-interleaved", {4, 14, 2}, 6) ==
        "megatron-interleaved: 14 microbatches in groups of 6 leave a last group of 2, less than "
        "the 4 ranks: the nearest group that fits is 5 or 7");
  CHECK(refusal("megatron-interleaved", {4, 8, 2}, 3) ==
        "megatron-interleaved: groups of 3 microbatches asked for; a group has at least as many as "
        "there are ranks and at most as many as there are microbatches: 4");
  CHECK(refusal("megatron-interleaved", {4, 8, 2}, 9) ==
        "megatron-interleaved: groups of 9 microbatches asked for; a group has at least as many as "
        "there are ranks and at most as many as there are microbatches: 8");
}

TEST_CASE("Rejections: both directions", "[plan][generators]") {
  CHECK(refusal("dualpipe", {3, 8, 0}) ==
        "dualpipe: 3 ranks asked for, but it needs an even number: 2 or 4");
  CHECK(refusal("dualpipe", {4, 7, 0}) ==
        "dualpipe: 7 microbatches asked for, but 4 ranks need an even number of at least 8: 8");
  CHECK(refusal("dualpipe", {4, 9, 0}) ==
        "dualpipe: 9 microbatches asked for, but 4 ranks need an even number of at least 8: 8 or "
        "10");
  CHECK(refusal("dualpipev", {4, 7, 0}) ==
        "dualpipev: 7 microbatches are too few for 4 ranks: at least twice as many are needed, 8");
  CHECK(refusal("chimera", {5, 4, 0}) ==
        "chimera: 5 ranks asked for, but it needs an even number: 4 or 6");
  CHECK(refusal("chimera", {4, 5, 0}) ==
        "chimera: 5 microbatches asked for, but half of them go each way, so an even number is "
        "needed: 4 or 6");
}

TEST_CASE("Rejections: PipeDream's steps", "[plan][generators]") {
  CHECK(refusal("pipedream-2bw", {4, 8, 0}, 5) ==
        "pipedream-2bw: 8 microbatches are not a multiple of the 5 of a step: 5 or 10");
  CHECK(refusal("pipedream-2bw", {4, 8, 0}, 2) ==
        "pipedream-2bw: a step every 2 microbatches asked for, but two weight versions suffice "
        "only with at least as many as ranks: 4");
  // 4 would suffice for the versions, but 6 is not a multiple of it.
  CHECK(refusal("pipedream-2bw", {4, 6, 0}, 2) ==
        "pipedream-2bw: a step every 2 microbatches asked for, but two weight versions suffice "
        "only with at least as many as ranks: 6");
}

TEST_CASE("PipeDream-2BW steps after the smallest sufficient divisor, even for large numbers",
          "[plan][generators]") {
  const auto step_every = [](int ranks, int microbatches) {
    ScheduleRequest request;
    request.name = "pipedream-2bw";
    request.ranks = ranks;
    request.microbatches = microbatches;
    return lowering_of(request).step_every;
  };
  CHECK(step_every(4, 12) == 4);
  CHECK(step_every(5, 12) == 6);
  CHECK(step_every(7, 12) == 12);
  CHECK(step_every(20, 12) == 20);
  CHECK(step_every(2, 2'000'000'000) == 2);
  CHECK(step_every(3, 1'999'999'973) == 1'999'999'973);  // a prime; counting up is too slow
}

TEST_CASE("Rejections: options that a schedule does not have", "[plan][generators]") {
  CHECK(refusal("1f1b", {4, 8, 0}, 2) ==
        "1f1b: has no group size; these have one: megatron-interleaved, group-interleaved-1f1b or "
        "pipedream-2bw");
  ScheduleRequest request = request_of("1f1b", {4, 8, 0});
  request.memory_units = 8;
  CHECK(error_of([&] { make_schedule(request); }) ==
        "1f1b: takes no memory limit; these do: zb-auto or v-zb");
}

TEST_CASE("The number of microbatches that an error message suggests is accepted",
          "[plan][generators]") {
  int refused = 0;
  for (const char* name : {"interleaved-1f1b", "interleaved-zb", "megatron-interleaved", "dualpipe",
                           "dualpipev", "chimera", "pipedream-2bw"})
    for (const int P : {2, 4, 6, 8})
      for (int M = 1; M <= 40; ++M) {
        const std::string text = refusal(name, {P, M, 0});
        const bool by_group = text.find("group of") != std::string::npos;
        if (text == "no error" || by_group)
          continue;
        ++refused;
        CAPTURE(text);
        const auto numbers = named_in(text);
        REQUIRE_FALSE(numbers.empty());
        for (const int number : numbers)
          REQUIRE(refusal(name, {P, number, 0}) == "no error");
      }
  CHECK(refused > 100);
}

TEST_CASE("The group that an error message suggests is accepted", "[plan][generators]") {
  int refused = 0;
  for (const char* name : {"megatron-interleaved", "pipedream-2bw"})
    for (const int P : {2, 3, 4, 6})
      for (int M = P; M <= 24; ++M)
        for (int group = 1; group <= M + 2; ++group) {
          const Sizes sizes{P, M, name == std::string("pipedream-2bw") ? 1 : 2};
          const std::string text = refusal(name, sizes, group);
          const bool by_microbatches = text.find("not a multiple") != std::string::npos;
          if (text == "no error" || by_microbatches)
            continue;
          ++refused;
          CAPTURE(text);
          const auto numbers = named_in(text);
          REQUIRE_FALSE(numbers.empty());
          for (const int number : numbers)
            REQUIRE(refusal(name, sizes, number) == "no error");
        }
  CHECK(refused > 100);
}

TEST_CASE("On a placement, each order runs in its own way", "[plan][generators]") {
  const auto uneven = parse_placement("0:[0,1,4],1:[2,3]");
  CHECK(to_string(make_on_placement("gpipe", uneven, 2)) ==
        "0F0 0F1 1F0 1F1 4F0 4F1 4B0 4B1 1B0 1B1 0B0 0B1\n"
        "2F0 2F1 3F0 3F1 3B0 3B1 2B0 2B1\n");
  CHECK(to_string(make_on_placement("1f1b", uneven, 2)) ==
        "0F0 1F0 0F1 1F1 4F0 4B0 4F1 4B1 1B0 0B0 1B1 0B1\n"
        "2F0 3F0 2F1 3F1 3B0 2B0 3B1 2B1\n");
  CHECK(to_string(make_on_placement("inference", uneven, 2)) ==
        "0F0 0F1 1F0 1F1 4F0 4F1\n"
        "2F0 2F1 3F0 3F1\n");
}

TEST_CASE("On a placement of one stage per rank, the orders are the plain ones",
          "[plan][generators]") {
  for (int P = 1; P <= 16; ++P)
    for (const int M : {1, 2, 3, 4, 5, 8, 16, 17, 32})
      for (const char* name : {"gpipe", "1f1b", "inference"}) {
        CAPTURE(name, P, M);
        REQUIRE(make_on_placement(name, loop_placement(P, P), M) == make_schedule(name, P, M));
      }
}

TEST_CASE("On any placement, the orders are valid", "[plan][generators]") {
  for (const char* text : {"0:[0]", "0:[0,1,2]", "0:[1],1:[0]", "0:[0,3],1:[1,2]",
                           "0:[0,1,4],1:[2,3]", "0:[0,5,2],1:[1],2:[3,4]", "0:[2],1:[0,1,3,4]"})
    for (const int M : {1, 2, 5, 9})
      for (const char* name : {"gpipe", "1f1b", "inference"}) {
        ScheduleRequest request = request_of(name, {0, M, 0});
        request.rank_of_stage = parse_placement(text);
        CAPTURE(name, text, M);
        const Schedule schedule = make_schedule(request);
        CHECK(error_of([&] { validate(schedule); }) == "no error");
        CHECK(placement_of(schedule) == one_route(request.rank_of_stage));
        CHECK(stage_count(schedule) == stage_count(request));
      }
}

TEST_CASE("On a placement, 1f1b has no more microbatches in flight than stages to the end",
          "[plan][generators]") {
  const auto rank_of_stage = parse_placement("0:[0,1,4],1:[2,3]");
  const Schedule schedule = make_on_placement("1f1b", rank_of_stage, 12);
  for (int stage = 0; stage < 5; ++stage) {
    int held = 0, most = 0;
    for (const Action& a :
         schedule.ranks[static_cast<std::size_t>(rank_of_stage[static_cast<std::size_t>(stage)])])
      if (a.stage == stage) {
        held += a.kind == ActionKind::Forward ? 1 : -1;
        most = std::max(most, held);
      }
    CAPTURE(stage);
    CHECK(most <= 5 - stage);
  }
}

TEST_CASE("Other schedules, and placements with a gap, are rejected", "[plan][generators]") {
  for (const std::string& name : schedule_names())
    if (name != "gpipe" && name != "1f1b" && name != "inference")
      CHECK(error_of([&] {
              make_on_placement(name, {0, 1}, 4);
            }) == name + " has a fixed placement; these run on any: gpipe, 1f1b or inference");
  CHECK(error_of([] {
          make_on_placement("gpipe", {0, 2}, 4);
        }) == "gpipe: rank 1 has no stage, but rank 2 has one");
  CHECK(error_of([] { make_on_placement("gpipe", {}, 4); }) ==
        "gpipe: a placement needs a rank from 0 on for every stage");
  CHECK(error_of([] {
          make_on_placement("1f1b", {0, -1}, 4);
        }) == "1f1b: a placement needs a rank from 0 on for every stage");
}

TEST_CASE("Taking the oldest weight gradients first keeps validity, positions and memory",
          "[plan][generators]") {
  for (const std::string& name : schedule_names())
    for_each_size(name, [](const Sizes&, const Schedule& schedule) {
      const Schedule oldest = oldest_weight_gradients_first(schedule);
      validate(oldest);
      REQUIRE(peak_activations(oldest) == peak_activations(schedule));
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
        std::map<int, std::set<int>> owed;
        for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
          Action before = schedule.ranks[rank][at];
          const Action after = oldest.ranks[rank][at];
          if (after.kind == ActionKind::InputGradient)
            owed[after.stage].insert(after.microbatch);
          if (after.kind == ActionKind::WeightGradient) {
            REQUIRE(after.microbatch == *owed[after.stage].begin());
            owed[after.stage].erase(after.microbatch);
            before.microbatch = after.microbatch;
          }
          REQUIRE(before == after);
        }
      }
    });
}

TEST_CASE("A schedule's name is found, or that of an equal one before it in the catalog",
          "[plan][generators]") {
  const std::map<std::string, std::string> equal{
      {"megatron-interleaved", "1f1b"},  // one chunk
      {"pipedream", "1f1b"},
      {"pipedream-2bw", "1f1b"},
      {"deepspeed-train", "1f1b"},
      {"deepspeed-inference", "inference"},
  };
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    const bool folded = stage_count(schedule) == 8;
    CHECK(known_name(schedule) == (equal.count(name) == 1 ? equal.at(name) : name) +
                                      ", 4 ranks, 8 microbatches" +
                                      (folded ? ", 2 chunks per rank" : ""));
  }
  CHECK(known_name(make_interleaved_1f1b(2, 4, 3)) ==
        "interleaved-1f1b, 2 ranks, 4 microbatches, 3 chunks per rank");
}

TEST_CASE("A found name gives the schedule, in all sizes", "[plan][generators]") {
  for (const std::string& name : schedule_names())
    for_each_size(name, [&](const Sizes& s, const Schedule& schedule) {
      if (s.P > 4 || s.M > 8)
        return;
      const auto found = known_name(schedule);
      REQUIRE(found.has_value());
      const std::string known = found->substr(0, found->find(','));
      REQUIRE(make_schedule(request_of(known, s)) == schedule);
    });
}

TEST_CASE("A custom order has no name", "[plan][generators]") {
  CHECK(known_name(parse_csv("0F1,0F0,0B0,0B1\n", "s.csv")) == std::nullopt);
  CHECK(known_name(Schedule{}) == std::nullopt);
}

}  // namespace generators_test
