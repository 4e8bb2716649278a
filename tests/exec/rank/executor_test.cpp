#include "pipewright/exec/rank/executor.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "exec/support/equals_serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/sanitized.hpp"

namespace executor_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::same_bits;
using test::small_partition;
using test::small_setup;

void check_equals_serial(const plan::Schedule& schedule, const plan::Partition& partition,
                         const plan::LoweringOptions& options = {}) {
  const plan::Program program = plan::lower(schedule, options);
  const exec::TrainingSetup setup = small_setup();
  Executor executor(program, partition, setup);
  // The serial training depends only on the microbatches and their gradient groups.
  static std::map<std::pair<int, std::vector<int>>, test::SerialOutcome> known;
  const std::pair key(program.microbatches, exec::gradient_groups(program, setup, 1));
  if (known.count(key) == 0)
    known[key] = test::train_serially(setup, key.first, key.second, /*steps=*/3);
  test::check_equals(executor, known[key]);
}

/// The result of trying a request.
enum class Tried {
  Trained,
  Refused,       // the schedule computes no gradients
  Impossible,    // the schedule does not support these sizes, or there are only six layers
  Asynchronous,  // its training differs from the serial one: see asynchronous_test
};

Tried try_schedule(const plan::ScheduleRequest& request) {
  plan::Schedule schedule;
  try {
    schedule = plan::make_schedule(request);
  } catch (const plan::InputError&) {
    return Tried::Impossible;
  }
  const int stages = plan::stage_count(schedule);
  if (stages > 6)
    return Tried::Impossible;
  const auto partition = small_partition(stages);
  const auto options = plan::lowering_of(request);
  if (options.step_every > 0)
    return Tried::Asynchronous;
  if (!plan::is_forward_only(schedule)) {
    check_equals_serial(schedule, partition, options);
    return Tried::Trained;
  }
  CHECK(test::error_of([&] {
          Executor(plan::lower(schedule, options), partition, small_setup());
        }) == "the program computes no gradients: there is nothing to train");
  return Tried::Refused;
}

TEST_CASE("Every schedule trains with the bits of serial training, or is rejected with a message",
          "[exec]") {
  const std::vector<int> sizes =
      test::sanitized ? std::vector{1, 3, 4} : std::vector{1, 2, 3, 4, 6};
  std::map<Tried, std::set<std::string>> names;
  for (const std::string& name : plan::schedule_names())
    for (const int ranks : sizes)
      for (const int microbatches : {1, 4, 7}) {
        INFO(fmt::format("{}, {} ranks, {} microbatches", name, ranks, microbatches));
        plan::ScheduleRequest request;
        request.name = name;
        request.ranks = ranks;
        request.microbatches = microbatches;
        names[try_schedule(request)].insert(name);
      }
  CHECK(names[Tried::Refused] == std::set<std::string>{"deepspeed-inference", "inference"});
  CHECK(names[Tried::Asynchronous] == std::set<std::string>{"pipedream", "pipedream-2bw"});
  CHECK(names[Tried::Trained].size() + 4 == plan::schedule_names().size());
}

TEST_CASE("Several chunks per rank train with the bits of serial training", "[exec]") {
  for (const std::string name :
       {"interleaved-1f1b", "megatron-interleaved", "looped-bfs", "interleaved-zb", "hanayo"})
    for (const int chunks : {2, 3}) {
      INFO(fmt::format("{}, {} chunks", name, chunks));
      plan::ScheduleRequest request;
      request.name = name;
      request.ranks = 2;
      request.microbatches = 4;
      request.chunks = chunks;
      const bool half_a_wave = name == "hanayo" && chunks % 2 != 0;
      CHECK(try_schedule(request) == (half_a_wave ? Tried::Impossible : Tried::Trained));
    }
}

TEST_CASE("Communicators, transfer modes and blocking do not change the results", "[exec]") {
  const auto schedule = plan::make_1f1b(2, 4);
  for (const auto layout : {plan::CommunicatorLayout::Edge, plan::CommunicatorLayout::Pair,
                            plan::CommunicatorLayout::Rank})
    for (const auto mode : {plan::TransferMode::Eager, plan::TransferMode::Rendezvous})
      if (plan::find_deadlock(plan::lower(schedule), layout, mode))
        CHECK(test::error_of([&] {
                check_equals_serial(schedule, small_partition(2), {layout, mode, false});
              }).starts_with("deadlock: "));
      else
        check_equals_serial(schedule, small_partition(2), {layout, mode, false});
  check_equals_serial(schedule, small_partition(2),
                      {plan::CommunicatorLayout::Edge, plan::TransferMode::Eager, true});
}

TEST_CASE("A backward split into I and W gives the same bits", "[exec]") {
  check_equals_serial(plan::parse_csv("0F0,0F1,0I0,0I1,0W0,0W1\n"
                                      "1F0,1I0,1F1,1W0,1I1,1W1\n",
                                      "split.csv"),
                      small_partition(2));
}

TEST_CASE("Two stages of one rank pass tensors without a transfer", "[exec]") {
  // In a V, rank 0 holds the first and the last stage.
  const auto partition = small_partition(4);
  check_equals_serial(plan::parse_csv("0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n"
                                      "1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n",
                                      "v.csv"),
                      partition);
}

TEST_CASE("The initial weights do not depend on the partition", "[exec]") {
  const auto setup = small_setup();
  const Executor two(plan::lower(plan::make_1f1b(2, 2)), small_partition(2), setup);
  const Executor three(plan::lower(plan::make_1f1b(3, 2)), small_partition(3), setup);
  const auto left = two.parameters(), right = three.parameters();
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    CHECK(same_bits(left[i], right[i]));
}

TEST_CASE("The loss falls", "[exec]") {
  auto setup = small_setup();
  setup.optimizer.learning_rate = 1e-2;
  Executor executor(plan::lower(plan::make_1f1b(2, 4)), small_partition(2), setup);
  const double first = executor.step(0).value().loss;
  double last = first;
  for (int repeat = 0; repeat < 20; ++repeat)
    last = executor.step(0).value().loss;
  CHECK(last < first / 2);
}

TEST_CASE("The observer gets every instruction once, in order, with consistent times", "[exec]") {
  const auto program = plan::lower(plan::make_1f1b(2, 3));
  std::vector<std::vector<InstructionRecord>> heard(2);
  Executor executor(program, small_partition(2), small_setup(),
                    {.observer = [&](const InstructionRecord& record) {
                      heard[static_cast<std::size_t>(record.rank)].push_back(record);
                    }});
  const auto result = executor.step(0).value();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::multiset<std::string> expected, seen;
    for (const auto& i : program.ranks[rank])
      expected.insert(to_string(i));
    double before = 0;
    for (const InstructionRecord& record : heard[rank]) {
      seen.insert(to_string(record.instruction));
      CHECK(record.start <= record.end);
      CHECK(record.end <= result.duration);
      CHECK(record.peak >= record.held_after);
      if (is_compute(record.instruction.kind))
        CHECK(record.start.value >= before);
      if (is_compute(record.instruction.kind))
        before = record.end.value;
    }
    CHECK(seen == expected);
  }
}

TEST_CASE("No activation outlives its step", "[exec]") {
  const auto program = plan::lower(plan::make_1f1b(2, 4));
  std::vector<plan::Bytes> at_begin(2);
  Executor executor(program, small_partition(2), small_setup(),
                    {.observer = [&](const InstructionRecord& record) {
                      if (to_string(record.instruction) == fmt::format("{}LOAD0", record.rank))
                        at_begin[static_cast<std::size_t>(record.rank)] = record.held_before;
                    }});
  // Parameters, gradients and AdamW's two moments stay resident, and a step count of 4 bytes for
  // each tensor.
  std::int64_t standing = 0;
  for (const at::Tensor& tensor : executor.parameters())
    standing += 4 * static_cast<std::int64_t>(tensor.nbytes()) + 4;
  for (int step = 0; step < 10; ++step) {
    executor.step(step);
    CHECK(at_begin[0].value + at_begin[1].value == standing);
  }
}

/// Returns its input until the given microbatch, where it throws.
class Failing final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    if (context.microbatch == 2)
      throw std::runtime_error("the cable is out");
    return input * 1;
  }
};

TEST_CASE("A layer that throws ends all ranks, and the message names rank, action and cause",
          "[exec]") {
  auto setup = small_setup();
  setup.layers[4] = {"failing", [] { return std::make_shared<Failing>(); }};
  Executor executor(plan::lower(plan::make_1f1b(3, 4)), small_partition(3), setup);
  std::string message;
  try {
    executor.step(0);
  } catch (const RankFailure& failure) {
    message = failure.what();
  }
  CHECK(message == "rank 2, action 2F2, step 0: the cable is out");
  CHECK_THROWS_AS(executor.step(1), std::logic_error);
}

std::atomic<bool> let_go{false};

class Hanging final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    while (context.step == 1 && context.microbatch == 2 && !let_go)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return input * 1;
  }
};

TEST_CASE("Stalled ranks are reported with their actions", "[exec]") {
  auto setup = small_setup();
  setup.layers[3] = {"hanging", [] { return std::make_shared<Hanging>(); }};
  std::vector<std::string> reports;
  Executor executor(
      plan::lower(plan::make_gpipe(3, 4)), small_partition(3), setup,
      {.stall = std::chrono::milliseconds(300), .when_stalled = [&](const std::string& why) {
         reports.push_back(why);
         let_go = true;
       }});
  CHECK(executor.step(0).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // ranks may idle between steps
  CHECK(reports.empty());
  CHECK(executor.step(1).has_value());
  CHECK(reports == std::vector<std::string>{
                       "rank 1 has been at 1F2 for 0.3 s and does not end; rank 0 waits in "
                       "0RECV_B0 for it; rank 2 waits in 2RECV_F2 for it"});
}

/// A transport whose collectives do not finish while it hangs, which is 10 s at most.
class HangsInCollectives final : public Transport {
 public:
  explicit HangsInCollectives(int ranks) : inner_(make_in_process_transport(ranks, false)) {}

  std::atomic<bool> hangs{false};

  void send(const Transfer& transfer, Tensors tensors) override {
    inner_->send(transfer, std::move(tensors));
  }
  Tensors receive(const Transfer& transfer) override { return inner_->receive(transfer); }
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    for (int waits = 0; hangs && waits < 10'000; ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return inner_->all_to_all(group, rank, parts, lane);
  }
  void abort(const std::string& why) override { inner_->abort(why); }

 private:
  std::shared_ptr<Transport> inner_;
};

TEST_CASE("A step that all ranks have finished but that does not end is reported", "[exec]") {
  const auto transport = std::make_shared<HangsInCollectives>(3);
  std::vector<std::string> reports;
  Executor executor(plan::lower(plan::make_gpipe(3, 4), {.share_loss = true}), small_partition(3),
                    small_setup(),
                    {.stall = std::chrono::milliseconds(300),
                     .when_stalled =
                         [&](const std::string& why) {
                           reports.push_back(why);
                           transport->hangs = false;
                         },
                     .transport = transport});
  CHECK(executor.step(0).has_value());
  transport->hangs = true;
  CHECK(executor.step(1).has_value());
  CHECK(reports ==
        std::vector<std::string>{"no rank has made progress for 0.3 s: ranks 0, 1, 2 wait in the "
                                 "end of a step, which all ranks have entered"});
}

TEST_CASE("A stop ends the step on every rank", "[exec]") {
  std::atomic<bool> stop{false};
  Executor executor(plan::lower(plan::make_gpipe(4, 4)), small_partition(4), small_setup(),
                    {.observer =
                         [&](const InstructionRecord& record) {
                           if (to_string(record.instruction) == "1F1")
                             stop = true;
                         },
                     .stop = &stop});
  CHECK_FALSE(executor.step(0).has_value());
}

TEST_CASE("A Program that cannot run is rejected before it starts", "[exec]") {
  const auto setup = small_setup();
  const auto program = plan::lower(plan::make_1f1b(2, 2));
  const auto refused = [&](const plan::Program& p, const plan::Partition& partition) {
    return test::error_of([&] { Executor(p, partition, setup); });
  };
  CHECK(refused(program, plan::Partition{{0, 2, 5}}) ==
        "the partition [0, 2, 5] is for 5 layers, but the model has 6");
  CHECK(refused(program, small_partition(3)) ==
        "the partition [0, 2, 4, 6] has 3 stages, but the program 2");
  CHECK(test::error_of([&] {
          Executor(program, small_partition(2), setup, {.devices = std::vector<RankDevice>(3)});
        }) == "3 devices were given for a job of 2 ranks. Give none, or one for each rank");
  CHECK(test::error_of([&] { Executor(program, small_partition(2), setup, {.replicas = 0}); }) ==
        "0 replicas of the pipeline were requested, but at least 1 is needed");
  CHECK(test::error_of([&] { Executor(program, small_partition(2), setup, {.only_rank = 2}); }) ==
        "there is no rank 2: the ranks of the job are 0 to 1");
}

}  // namespace executor_test
