// Fused pairs that are interleaved: their bits equal sequential execution, all tensor-parallel
// ranks use the same order, failures name the action, and a user's function can run them.

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "exec/support/sharded_gpt.hpp"
#include "exec/support/stall_reports.hpp"
#include "job/watch.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "rank/baton.hpp"

namespace fused_pairs_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::make;
using test::partition_for;
using test::sharded_setup;
using test::Sizes;

plan::Program program_of(const Sizes& sizes,
                         plan::RecomputeMode recompute = plan::RecomputeMode::None) {
  return plan::lower(sizes.schedule,
                     {.replicas = sizes.replicas, .recompute = recompute, .share_loss = true});
}

/// Returns a schedule in which both actions of a pair belong to one stage. In the second pair
/// backwards are split and one is fused.
plan::Schedule of_one_stage() {
  return plan::parse_csv(
      "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0I1)OVERLAP_F_B,0W1,(0F3;0B2)OVERLAP_F_B,0B3\n", "pairs.csv");
}

/// Returns a schedule whose first rank has its forwards and backwards fused, and whose second rank
/// runs its backwards first.
plan::Schedule of_two_stages() {
  return plan::parse_csv(
      "0F0,0F1,0F2,(0F3;0B0)OVERLAP_F_B,0B1,0B2,0B3\n"
      "1F0,(1B0;1F1)OVERLAP_F_B,(1B1;1F2)OVERLAP_F_B,(1B2;1F3)OVERLAP_F_B,1B3\n",
      "pairs.csv");
}

TEST_CASE("Interleaved fused pairs have the bits of serial training", "[exec]") {
  for (const Sizes& sizes : std::vector<Sizes>{{make("dualpipe", 2, 8), 1, 2},
                                               {make("dualpipev", 2, 6), 2, 2},
                                               {of_one_stage(), 1, 4},
                                               {of_two_stages(), 1, 2}}) {
    INFO(to_string(sizes));
    check_equals_serial(program_of(sizes), partition_for(sizes.schedule), sharded_setup(4),
                        sizes.options(), /*steps=*/2);
  }
}

TEST_CASE("Interleaved fused pairs with recomputation have the bits of serial training", "[exec]") {
  for (const auto& schedule : {make("dualpipev", 2, 6), of_one_stage()})
    for (const auto mode : {plan::RecomputeMode::Full, plan::RecomputeMode::Selective}) {
      const Sizes sizes{schedule, 1, 2};
      INFO(to_string(sizes));
      check_equals_serial(program_of(sizes, mode), partition_for(schedule), sharded_setup(2),
                          sizes.options(), /*steps=*/2);
    }
}

struct Recorded {
  std::mutex mutex;
  std::map<int, std::vector<InstructionRecord>> by_rank;

  Observer observer() {
    return [this](const InstructionRecord& record) {
      const std::lock_guard lock(mutex);
      by_rank[record.rank].push_back(record);
    };
  }
};

/// Returns the number of pairs whose second action began before the first ended, and the number of
/// all fused pairs.
std::array<int, 2> overlapping(const Recorded& recorded) {
  std::array<int, 2> pairs{};
  for (const auto& [rank, records] : recorded.by_rank) {
    const InstructionRecord* first = nullptr;
    for (const InstructionRecord& record : records) {
      if (!plan::traits_of(record.instruction.kind).action)
        continue;
      if (first != nullptr) {
        pairs[0] += record.start < first->end ? 1 : 0;
        ++pairs[1];
        // Time that overlaps the other action counts for neither.
        CHECK(first->shards + record.shards <= std::max(first->end, record.end) - first->start);
      }
      first = record.instruction.fused_with_next ? &record : nullptr;
    }
  }
  return pairs;
}

TEST_CASE("Pairs interleave at tensor-parallel communication, and run in sequence without it",
          "[exec]") {
  for (const int shards : {1, 2}) {
    const Sizes sizes{make("dualpipe", 2, 8), 1, shards};
    Recorded recorded;
    auto options = sizes.options();
    options.observer = recorded.observer();
    Executor executor(program_of(sizes), partition_for(sizes.schedule), sharded_setup(2), options);
    executor.step(0);
    const auto [overlap, all] = overlapping(recorded);
    CHECK(all == shards * 10);
    CHECK(overlap == (shards == 1 ? 0 : all));
    for (const auto& [rank, records] : recorded.by_rank)
      for (const InstructionRecord& record : records)
        CHECK(record.shards <= record.end - record.start);
  }
}

/// Returns what two strands write: a letter for each turn, and the strand's number for each
/// meeting.
std::string turns(int meetings_of_first, int meetings_of_second) {
  Baton baton;
  std::mutex mutex;
  std::string text;
  const auto write = [&](const std::string& word) {
    const std::lock_guard lock(mutex);
    text += word;
  };
  const auto strand = [&](int which, int meetings) {
    baton.run(which, [&] {
      for (int m = 0; m < meetings; ++m) {
        write(which == 0 ? "a" : "b");
        baton.meet([&] { write(std::to_string(which)); });
        if (baton.holder() != which)
          write("!");
      }
      write(which == 0 ? "A" : "B");
    });
  };
  std::thread second([&] { strand(1, meetings_of_second); });
  strand(0, meetings_of_first);
  second.join();
  return text;
}

/// Returns only the order of the meetings.
std::string meetings_in(std::string text) {
  std::erase_if(text, [](char c) { return c != '0' && c != '1' && c != '!'; });
  return text;
}

TEST_CASE("Two strands alternate at their meetings, whichever is faster, until one goes on alone",
          "[exec]") {
  for (int repeat = 0; repeat < 50; ++repeat) {
    CHECK(meetings_in(turns(3, 3)) == "010101");
    CHECK(meetings_in(turns(1, 4)) == "01111");
    CHECK(meetings_in(turns(4, 1)) == "01000");
    CHECK(turns(0, 2) == "Ab1b1B");  // without meetings, one after the other
    CHECK(turns(0, 0) == "AB");
  }
}

TEST_CASE("A strand that fails ends the other one at its next turn", "[exec]") {
  for (const int failing : {0, 1}) {
    Baton baton;
    std::array<std::string, 2> ends;
    const auto strand = [&](int which) {
      try {
        baton.run(which, [&] {
          for (int m = 0; m < 3; ++m)
            baton.meet([&] {
              if (which == failing && m == 1)
                throw std::runtime_error("broken");
            });
        });
        ends[static_cast<std::size_t>(which)] = "over";
      } catch (const Aborted&) {
        ends[static_cast<std::size_t>(which)] = "ended";
      } catch (const std::exception& error) {
        ends[static_cast<std::size_t>(which)] = error.what();
      }
    };
    std::thread second([&] { strand(1); });
    strand(0);
    second.join();
    CHECK(ends[static_cast<std::size_t>(failing)] == "broken");
    CHECK(ends[static_cast<std::size_t>(1 - failing)] == "ended");
  }
}

/// Returns its input, after calling `work` in the forward and `back` in the backward.
class Probe final : public Layer {
 public:
  using Work = std::function<void(int microbatch, const TensorParallelPlace&)>;
  Probe(Work work, Work back, const TensorParallelPlace& place)
      : work_(std::move(work)), back_(std::move(back)), place_(place) {}
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    const int microbatch = context.microbatch;
    work_(microbatch, place_);
    if (input.requires_grad())
      input.register_hook([back = back_, place = place_, microbatch](const at::Tensor&) {
        back(microbatch, place);
      });
    return input;
  }

 private:
  Work work_, back_;
  TensorParallelPlace place_;
};

void nothing(int, const TensorParallelPlace&) {}

/// Returns the GPT with a probe as its third layer, which is the last of the first of two stages.
TrainingSetup probed_setup(const Probe::Work& work, const Probe::Work& back) {
  auto setup = sharded_setup(2);
  const auto build = [=](const TensorParallelPlace& place) {
    return std::make_shared<Probe>(work, back, place);
  };
  setup.layers[2] = {.name = "probe", .build = [build] { return build({}); }, .build_shard = build};
  return setup;
}

std::string failure_of(const Sizes& sizes, const TrainingSetup& setup,
                       const ExecutorOptions& options) {
  Executor executor(program_of(sizes), partition_for(sizes.schedule), setup, options);
  try {
    executor.step(0);
  } catch (const RankFailure& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("A failure in a pair is reported with its rank and action, and ends the other ranks",
          "[exec]") {
  const auto breaks = [](int microbatch, const TensorParallelPlace& place) {
    if (place.index == 1 && microbatch == 0)
      throw std::runtime_error("out of memory");
  };
  const auto breaks_last = [](int microbatch, const TensorParallelPlace& place) {
    if (place.index == 1 && microbatch == 3)
      throw std::runtime_error("out of memory");
  };
  const Sizes sizes{of_two_stages(), 1, 2};
  CHECK(failure_of(sizes, probed_setup(nothing, breaks), sizes.options()) ==
        "rank 1, action 0B0, step 0: out of memory");
  CHECK(failure_of(sizes, probed_setup(breaks_last, nothing), sizes.options()) ==
        "rank 1, action 0F3, step 0: out of memory");
}

TEST_CASE("A stall names both actions of a pair", "[exec]") {
  test::StallReports stall;
  const Sizes sizes{of_one_stage(), 1, 2};
  const auto hangs = [&](int microbatch, const TensorParallelPlace& place) {
    if (place.index == 1 && microbatch == 2)
      stall.hang();
  };
  CHECK(failure_of(sizes, probed_setup(hangs, nothing), stall.watched(sizes.options())).empty());
  REQUIRE(stall.reports.size() == 1);
  CHECK(stall.reports[0].starts_with(
      "rank 1 has been at (0F2;0I1)OVERLAP_F_B for 0.3 s and does not end; rank 0 waits in "
      "collective "));
  CHECK(stall.reports[0].ends_with(" of the shards in (0F2;0I1)OVERLAP_F_B for it"));
}

TEST_CASE("A job gets both actions of a pair in one word", "[exec]") {
  const auto said = [](const char* first, const char* second) {
    return activity_text(activity_of(plan::parse_instruction(first).value(),
                                     plan::parse_instruction(second).value()));
  };
  CHECK(said("1F2", "0B1") == "(1F2;0B1)OVERLAP_F_B");
  CHECK(said("4095F65535", "0W0") == "(4095F65535;0W0)OVERLAP_F_B");
  CHECK(said("0R7", "4095I65535") == "(0R7;4095I65535)OVERLAP_F_B");
  CHECK(said("4096F0", "0B1") == "4096F0");  // too large for half a word
  const plan::Instruction large{plan::InstructionKind::SendGradient, 1 << 20, 1 << 20};
  CHECK(activity_text(activity_of(large)) == "1048576SEND_B1048576");
}

TEST_CASE("A user's function runs a pair in another order, with the same bits", "[exec]") {
  for (const int shards : {1, 2}) {
    const Sizes sizes{make("dualpipe", 2, 8), 1, shards};
    auto options = sizes.options();
    std::atomic<int> calls{0};
    options.run_pair = [&](const FusedPair& pair) {
      ++calls;
      if (pair.second.microbatch % 2 == 0)
        return pair.run_both();
      pair.run_second();
      pair.run_first();
    };
    check_equals_serial(program_of(sizes), partition_for(sizes.schedule), sharded_setup(2), options,
                        /*steps=*/2);
    CHECK(calls == 2 * shards * 10);
  }
}

TEST_CASE("A user's function gets the pair, rank and step that it runs", "[exec]") {
  const Sizes sizes{of_two_stages(), 1, 2};
  auto options = sizes.options();
  std::mutex mutex;
  std::map<int, std::string> told;
  options.run_pair = [&](const FusedPair& pair) {
    pair.run_both();
    const std::lock_guard lock(mutex);
    told[pair.rank] +=
        fmt::format("{}:{};{} ", pair.step, to_string(pair.first), to_string(pair.second));
  };
  Recorded recorded;
  options.observer = recorded.observer();
  Executor executor(program_of(sizes), partition_for(sizes.schedule), sharded_setup(2), options);
  executor.step(5);
  for (const int shard : {0, 1}) {
    CHECK(told[shard] == "5:0F3;0B0 ");
    CHECK(told[2 + shard] == "5:1B0;1F1 5:1B1;1F2 5:1B2;1F3 ");
  }
  CHECK(overlapping(recorded) == std::array{8, 8});
}

TEST_CASE("An error of a user's function is reported with its rank and pair", "[exec]") {
  const Sizes sizes{make("dualpipe", 2, 8), 1, 1};
  const auto failure = [&](const std::function<void(const FusedPair&)>& run_pair) {
    auto options = sizes.options();
    options.run_pair = [&](const FusedPair& pair) {
      if (pair.rank == 1)
        return run_pair(pair);
      pair.run_both();
    };
    return failure_of(sizes, sharded_setup(2), options);
  };
  const std::string pair = "rank 1, action (1F1;0B4)OVERLAP_F_B, step 0: ";
  CHECK(failure([](const FusedPair&) { throw std::runtime_error("no kernel"); }) ==
        pair + "no kernel");
  CHECK(failure([](const FusedPair& p) { p.run_first(); }) ==
        pair + "the function for fused pairs has not run 0B4");
  CHECK(failure([](const FusedPair& p) {
          p.run_both();
          p.run_second();
        }) == pair + "the function for fused pairs runs 0B4 twice");
}

}  // namespace fused_pairs_test
