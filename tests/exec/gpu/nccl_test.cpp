// Ranks that are processes with a GPU each, over NCCL. If there are fewer GPUs, some share one.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "exec/support/equals_serial.hpp"
#include "exec/support/processes.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/gpu/nccl_transport.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/sanitized.hpp"
#include "support/skip.hpp"

namespace nccl_test {

// Each role below is the work of the ranks of one test. The test case that starts them comes after
// it.

using namespace pipewright;
using namespace pipewright::exec;
using test::make;
using test::partition_for;
using test::Ranks;
using test::say;
using test::schedules;
using test::small_setup;

void need_gpu() {
  if (gpus().names.empty())
    test::skip("no GPU: " + gpus().why_none);
}

bool on_standin() {
  const char* const loaded = std::getenv("LD_PRELOAD");
  return loaded != nullptr && std::string(loaded).find("standin/libnccl") != std::string::npos;
}

/// Skips unless NCCL's stand-in is loaded, which can be told to fail; NCCL itself cannot.
void need_standin() {
  need_gpu();
  if (!on_standin())
    test::skip("the stand-in for NCCL is not loaded");
}

/// Returns the numbers of processes to test. On real GPUs two processes may share one, and more
/// take long to start.
std::vector<int> sizes_here(std::vector<int> sizes) {
  if (test::sanitized)
    std::erase_if(sizes, [](int size) { return size > 3; });
  const int most = std::max(2, static_cast<int>(gpus().names.size()));
  if (!on_standin() && std::erase_if(sizes, [&](int size) { return size > most; }) > 0)
    test::skip_part(fmt::format("more than {} processes: there are too few GPUs", most));
  return sizes;
}

RankDevice own_gpu(const Job& job) { return gpu_of_process(job.environment().local_rank); }

std::shared_ptr<Transport> transport_for(Job& job, plan::CommunicatorLayout layout) {
  return make_nccl_transport(job, own_gpu(job).device, {.communicators = layout});
}

ExecutorOptions options_for(Job& job, std::shared_ptr<Transport> transport, int replicas) {
  ExecutorOptions options;
  options.starting = [&job](const plan::Instruction& i) { job.doing(i); };
  options.pin_threads = false;
  options.replicas = replicas;
  options.devices.resize(static_cast<std::size_t>(job.size()));
  options.devices[static_cast<std::size_t>(job.rank())] = own_gpu(job);
  options.transport = std::move(transport);
  options.only_rank = job.rank();
  return options;
}

/// Returns the weights of this rank's stages, in order.
Tensors weights_of(const plan::Program& program, const plan::Partition& partition,
                   const TrainingSetup& setup, int rank, const std::vector<at::Tensor>& all) {
  Tensors own;
  auto next = all.begin();
  for (int stage = 0; stage < plan::stage_count(program); ++stage) {
    const auto ranks = program.placement.ranks_of(stage);
    for (int layer = partition.boundaries.at(static_cast<std::size_t>(stage));
         layer < partition.boundaries.at(static_cast<std::size_t>(stage) + 1); ++layer)
      for (std::size_t p = build_layer(setup, layer)->parameters().size(); p > 0; --p, ++next)
        if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end())
          own.push_back(*next);
  }
  return own;
}

/// Returns the first difference from serial training on the same GPU; empty if there is none.
std::string difference_from_serial(Job& job, const plan::Schedule& schedule,
                                   const std::shared_ptr<Transport>& transport,
                                   plan::CommunicatorLayout layout, int replicas) {
  auto setup = small_setup();
  setup.clip_norm = 0.5;
  const auto program = plan::lower(schedule, {.communicators = layout,
                                              .replicas = replicas,
                                              .zero = replicas > 1,
                                              .gradient_norm = true,
                                              .share_loss = true});
  const auto partition = partition_for(schedule);
  Executor executor(program, partition, setup, options_for(job, transport, replicas));
  SerialTrainer serial(setup, program.microbatches * replicas,
                       gradient_groups(program, setup, replicas), own_gpu(job));
  for (int step = 0; step < 2; ++step) {
    const auto result = executor.step(step).value(), expected = serial.step(step);
    if (!test::same_bits(result.loss, expected.loss))
      return fmt::format("loss of step {}: {} and serially {}", step, result.loss, expected.loss);
    if (!test::same_bits(result.gradient_norm, expected.gradient_norm))
      return fmt::format("norm of step {}: {} and serially {}", step, result.gradient_norm,
                         expected.gradient_norm);
  }
  const auto own = executor.parameters();
  const auto expected =
      weights_of(program, partition, setup, job.rank() / replicas, serial.parameters());
  return std::equal(own.begin(), own.end(), expected.begin(), expected.end(),
                    [](const at::Tensor& a, const at::Tensor& b) { return test::same_bits(a, b); })
             ? ""
             : "weights";
}

const std::vector<plan::CommunicatorLayout> layouts{
    plan::CommunicatorLayout::Edge, plan::CommunicatorLayout::Pair, plan::CommunicatorLayout::Rank};

/// Trains every schedule for this number of ranks. Returns how many trainings were right.
int train_all(Job& job, plan::CommunicatorLayout layout, int replicas) {
  const auto transport = transport_for(job, layout);
  int right = 0;
  for (const plan::Schedule& schedule : schedules()) {
    if (static_cast<int>(schedule.ranks.size()) * replicas != job.size())
      continue;
    const std::string difference =
        difference_from_serial(job, schedule, transport, layout, replicas);
    if (difference.empty())
      ++right;
    else
      say(fmt::format("layout {}, {}\n{}", static_cast<int>(layout), difference,
                      plan::to_string(schedule)));
  }
  return right;
}

/// Runs a job for each layout. The place has a port for each layout after the first.
void train_by_layouts(const test::RankPlace& place, int replicas) {
  std::istringstream ports(place.argument.substr(place.argument.find(':')));
  JobEnvironment environment = place.environment;
  int right = 0;
  for (const plan::CommunicatorLayout layout : layouts) {
    Job job(environment, {.join_timeout = std::chrono::seconds(25)});
    try {
      right += train_all(job, layout, replicas);
    } catch (const Aborted&) {
      throw;
    } catch (const std::exception& error) {
      job.abort(error.what());
      throw;
    }
    ports.ignore(1);
    ports >> environment.port;
  }
  say(std::to_string(right));
}

Transfer transfer(const std::string& text, int from, int to) {
  return {plan::parse_instruction(text).value(), from, to};
}

/// Sends microbatches of another size in each pass, with some of the tensors on the CPU.
void mix_devices(Job& job, Shapes shapes) {
  const at::Device gpu = own_gpu(job).device;
  const auto transport = make_nccl_transport(job, gpu);
  const Stream stream = Stream::of(gpu, /*urgent=*/false);
  const OnStream on_stream(stream);
  for (const int rows : {1, 1000, 2}) {
    std::vector<Transfer> receives;
    for (int m = 0; m < 3; ++m)
      receives.push_back(transfer(fmt::format("1RECV_F{}", m), 0, 1));
    std::vector<Transfer> sends;
    for (const Transfer& each : receives)
      sends.push_back({plan::counterpart(each.instruction), 0, 1});
    transport->expect(job.rank(), job.rank() == 0 ? sends : receives, shapes);
    for (std::size_t m = 0; m < 3; ++m) {
      const at::Tensor numbers = at::arange(3 * rows).view({rows, 3}) + static_cast<int>(m);
      if (job.rank() == 0) {
        transport->send(sends[m], {numbers.to(gpu), at::Tensor(), numbers + 1});
        continue;
      }
      transport->post(receives[m]);
      const Tensors got = transport->receive(receives[m]);
      const bool right = got.size() == 3 && got[0].device() == gpu && got[2].is_cpu() &&
                         at::equal(got[0].cpu(), numbers) && !got[1].defined() &&
                         at::equal(got[2], numbers + 1);
      say(right ? "right" : "other");
    }
  }
}

/// One of two ranks between which one transfer is expected.
struct OneTransfer {
  explicit OneTransfer(Job& job)
      : gpu(own_gpu(job).device), transport(make_nccl_transport(job, gpu)) {
    transport->expect(job.rank(), {job.rank() == 0 ? send : receive}, Shapes::Fixed);
  }
  void go() const { transport->send(send, {at::ones({3}).to(gpu)}); }

  const at::Device gpu;
  const std::unique_ptr<Transport> transport;
  const Stream stream = Stream::of(gpu, /*urgent=*/false);
  const OnStream on_stream{stream};
  const Transfer receive = transfer("1RECV_F0", 0, 1);
  const Transfer send{plan::counterpart(receive.instruction), 0, 1};
};

/// Rank 0 finishes before rank 1 begins to receive.
void send_and_go(Job& job) {
  const OneTransfer one(job);
  if (job.rank() == 0)
    return one.go();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  one.transport->post(one.receive);
  say(at::equal(one.transport->receive(one.receive).at(0).cpu(), at::ones({3})) ? "it came"
                                                                                : "other");
}

/// Rank 1 waits for its device, which waits for a transfer, and rank 0 waits for rank 1.
void wait_for_hanging_device(Job& job) {
  const OneTransfer one(job);
  job.doing(plan::parse_instruction(job.rank() == 0 ? "0F0" : "1F0").value());
  if (job.rank() == 0) {
    one.go();
    one.transport->all_gather({0, 1}, 0, {});
    return;
  }
  one.transport->post(one.receive);
  const Tensors never = one.transport->receive(one.receive);
  one.transport->wait_for_device([&] { return one.stream.is_done(); }, "the end of a step");
}

/// Returns its input, but throws on one rank.
struct Throws final : Layer {
  at::Tensor forward(const at::Tensor& input, const CallContext& call) override {
    if (call.step == 1)
      throw std::runtime_error("out of order");
    return input;
  }
};

void train(Job& job, const std::string& what) {
  auto setup = small_setup();
  if (what == "throw")
    setup.layers[4].build = [] { return std::make_shared<Throws>(); };
  const auto s = make("1f1b", 2, 4);
  const auto transport = transport_for(job, plan::CommunicatorLayout::Edge);
  Executor executor(plan::lower(s, {.share_loss = true}), partition_for(s), setup,
                    options_for(job, transport, 1));
  for (int step = 0; step < 3; ++step) {
    if (step == 1)
      say("ready");
    executor.step(step);
  }
  say("end");
}

/// Trains on pipe x tensor: two tensor-parallel ranks for each stage.
void train_shards(Job& job) {
  auto setup = small_setup();
  setup.clip_norm = 0.5;
  setup.tensor_groups = 2;
  const auto schedule = make("1f1b", job.size() / 2, 4);
  const auto program = plan::lower(schedule, {.gradient_norm = true, .share_loss = true});
  auto options = options_for(job, transport_for(job, plan::CommunicatorLayout::Edge), 1);
  options.shards = 2;
  Executor executor(program, partition_for(schedule), setup, options);
  SerialTrainer serial(setup, 4, {}, own_gpu(job));
  for (int step = 0; step < 3; ++step) {
    const auto result = executor.step(step).value(), expected = serial.step(step);
    say(test::same_bits(result.loss, expected.loss) &&
                test::same_bits(result.gradient_norm, expected.gradient_norm)
            ? "right"
            : fmt::format("step {}: {} and serially {}", step, result.loss, expected.loss));
  }
}

const std::map<std::string, std::function<void(Job&)>> roles{
    {"shards", train_shards},
    {"mixed", [](Job& job) { mix_devices(job, Shapes::Fixed); }},
    {"mixed-dynamic", [](Job& job) { mix_devices(job, Shapes::Varying); }},
    {"go", send_and_go},
    {"throw", [](Job& job) { train(job, "throw"); }},
    {"stall", wait_for_hanging_device},
    {"hang", [](Job& job) { train(job, "hang"); }},
    {"error", [](Job& job) { train(job, "error"); }},
};

TEST_CASE("rank over NCCL", "[.][cuda]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  const std::string& role = place->argument;
  // Operation 0 of a communicator connects its ranks.
  if (role == "stall")
    ::setenv("PIPEWRIGHT_STANDIN_NCCL", "hang=1:1", 1);
  if (role == "hang")
    ::setenv("PIPEWRIGHT_STANDIN_NCCL", "hang=1:7", 1);
  if (role == "error")
    ::setenv("PIPEWRIGHT_STANDIN_NCCL", "error=1:7", 1);
  try {
    gpus();  // before LibTorch is used in any other way
    compute_reproducibly();
    at::set_num_threads(1);
    if (role.starts_with("train"))
      return train_by_layouts(*place, role.starts_with("train-replicas") ? 2 : 1);
    JobOptions options{.join_timeout = std::chrono::seconds(25)};
    if (role == "stall")
      options.stall = std::chrono::milliseconds(2500);
    Job job(place->environment, options);
    try {
      roles.at(role)(job);
    } catch (const Aborted& aborted) {
      say(aborted.what());
    } catch (const std::exception& error) {
      job.abort(error.what());
      say(error.what());
    }
  } catch (const std::exception& error) {
    say(error.what());
  }
}

Ranks ranks_of(int size, const std::string& role) {
  return Ranks({.size = size, .test_case = "rank over NCCL", .argument = role});
}

Ranks ranks_by_layouts(int size, const std::string& role) {
  return ranks_of(size, fmt::format("{}:{}:{}", role, test::free_port(), test::free_port()));
}

TEST_CASE("NCCL: tensor-parallel ranks have the bits of serial training", "[cuda][nccl]") {
  need_gpu();
  for (const int size : sizes_here({2, 4})) {
    Ranks ranks = ranks_of(size, "shards");
    for (int rank = 0; rank < size; ++rank)
      CHECK(ranks.said(rank) == "right\nright\nright\n");
  }
}

TEST_CASE("NCCL: each schedule has the bits of serial training with every layout of communicators",
          "[cuda][nccl]") {
  need_gpu();
  for (const int size : sizes_here({2, 3})) {
    Ranks ranks = ranks_by_layouts(size, "train");
    for (int rank = 0; rank < size; ++rank)
      CHECK(ranks.said(rank) == (size == 2 ? "12\n" : "6\n"));
  }
}

TEST_CASE("NCCL: replicas with sharded optimizers have the bits of serial training",
          "[cuda][nccl]") {
  need_gpu();
  for (const int size : sizes_here({2, 4, 6})) {
    Ranks ranks = ranks_by_layouts(size, "train-replicas");
    for (int rank = 0; rank < size; ++rank)
      CHECK(ranks.said(rank) == (size == 2 ? "3\n" : size == 4 ? "12\n" : "6\n"));
  }
}

TEST_CASE("NCCL: CPU tensors arrive as well, and passes may differ in size", "[cuda][nccl]") {
  need_gpu();
  for (const char* const role : {"mixed", "mixed-dynamic"}) {
    Ranks ranks = ranks_of(2, role);
    CHECK(ranks.said(0).empty());
    std::string expected;
    for (int microbatch = 0; microbatch < 9; ++microbatch)
      expected += "right\n";
    CHECK(ranks.said(1) == expected);
  }
}

TEST_CASE("NCCL: a rank's last send arrives although the rank ends at once", "[cuda][nccl]") {
  need_gpu();
  Ranks ranks = ranks_of(2, "go");
  CHECK(ranks.said(0).empty());
  CHECK(ranks.said(1) == "it came\n");
}

TEST_CASE("NCCL: a rank that throws ends the other", "[cuda][nccl]") {
  need_gpu();
  Ranks ranks = ranks_of(2, "throw");
  const std::string why = "ready\nrank 1, action 1F0, step 1: out of order\n";
  CHECK(ranks.said(0) == why);
  CHECK(ranks.said(1) == why);
}

TEST_CASE("NCCL: a device that never finishes is reported as a stall", "[cuda][nccl]") {
  need_standin();
  Ranks ranks = ranks_of(2, "stall");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    CAPTURE(rank, said);
    CHECK(said.starts_with(
        "no rank has made progress for 2.5 s: rank 0 (at 0F0) waits in a collective of ranks 0, 1 "
        "for rank 1; rank 1 (at 1F0) waits in the end of a step"));
  }
}

TEST_CASE("NCCL: a killed rank is noticed although all wait for their devices", "[cuda][nccl]") {
  need_standin();
  Ranks ranks = ranks_of(2, "hang");
  for (int rank = 0; rank < 2; ++rank)
    REQUIRE(ranks.await_line(rank, "ready"));
  ranks.signal(1, SIGKILL);
  CHECK(ranks.said(0).starts_with("ready\nrank 1 cannot be reached any more ("));
}

TEST_CASE("NCCL: an asynchronous error ends the job with NCCL's message", "[cuda][nccl]") {
  need_standin();
  Ranks ranks = ranks_of(2, "error");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    CAPTURE(said);
    CHECK(said.find("rank 1: NCCL, transfers ") != std::string::npos);
    CHECK(said.ends_with(
        ": remote process exited or there was a network error: an error of rank 1 on purpose\n"));
  }
}

}  // namespace nccl_test
