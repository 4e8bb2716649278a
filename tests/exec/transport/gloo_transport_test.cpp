#include "pipewright/exec/transport/gloo_transport.hpp"

#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "exec/support/processes.hpp"
#include "pipewright/exec/job/agreement.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace gloo_transport_test {

// Each role below is the work of the ranks of one test. The test case that starts them comes after
// it.

using namespace pipewright;
using namespace pipewright::exec;
using test::Ranks;
using test::say;

Transfer transfer(const char* text, int from, int to) {
  return {plan::parse_instruction(text).value(), from, to};
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined())
    return a.defined() == b.defined();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b) &&
         a.requires_grad() == b.requires_grad();
}

/// Returns one tensor of every kind; `step` makes the values differ.
Tensors all_kinds(int step) {
  return {torch::full({2, 3}, 1.5 + step).set_requires_grad(true),
          torch::arange(6, at::kLong).view({2, 3}).t() + step,  // not contiguous
          torch::tensor(7 + step),                              // a scalar
          torch::empty({0, 4}),
          at::Tensor(),
          torch::ones({5}, at::kBool),
          torch::full({3}, step, at::kBFloat16),
          torch::full({2}, c10::complex<double>(1, step), at::kComplexDouble).conj()};
}

/// Rank 0 sends three microbatches down to rank 1, which sends them back up.
void echo(Job& job, Shapes shapes) {
  const auto transport = make_gloo_transport(job);
  std::vector<Transfer> down;
  std::vector<Transfer> up;
  for (int m = 0; m < 3; ++m) {
    down.push_back(transfer(fmt::format("1RECV_F{}", m).c_str(), 0, 1));
    up.push_back(transfer(fmt::format("0RECV_B{}", m).c_str(), 1, 0));
  }
  const auto counterpart = [](const Transfer& t) {
    return Transfer{plan::counterpart(t.instruction), t.from, t.to};
  };
  for (int step = 0; step < 2; ++step) {
    transport->expect(job.rank(), job.rank() == 0 ? up : down, shapes);
    for (std::size_t m = 0; m < 3; ++m) {
      if (job.rank() == 1) {
        transport->send(counterpart(up[m]), transport->receive(down[m]));
        continue;
      }
      const Tensors sent = all_kinds(step + static_cast<int>(m));
      transport->send(counterpart(down[m]), sent);
      const Tensors back = transport->receive(up[m]);
      say(back.size() == sent.size() && std::ranges::equal(back, sent, same) ? "same" : "other");
    }
  }
}

/// Returns as many tensors as the rank's number, with shapes of its own.
Tensors handed_in(int rank, int round) {
  return Tensors(static_cast<std::size_t>(rank), torch::full({rank, 2}, 10 * round + rank));
}

std::string shown(const std::vector<Tensors>& all) {
  std::string text;
  for (const Tensors& tensors : all) {
    text += "|";
    for (const at::Tensor& tensor : tensors)
      text += fmt::format(" {}x{}", tensor.size(0), tensor[0][0].item<int>());
  }
  return text;
}

/// All three ranks gather on one thread while ranks 0 and 2 gather on another.
void all_gather(Job& job) {
  const auto transport = make_gloo_transport(job);
  const int rank = job.rank();
  std::string of_two;
  std::thread beside([&] {
    for (int round = 0; rank != 1 && round < 3; ++round)
      of_two = shown(transport->all_gather({0, 2}, rank, handed_in(rank, round)));
  });
  std::string of_three;
  for (int round = 0; round < 3; ++round)
    of_three = shown(transport->all_gather({0, 1, 2}, rank, handed_in(rank, round)));
  beside.join();
  say(of_three);
  say(of_two);
}

/// Sends microbatches of another size in each pass: some fit into the buffer of the last pass, some
/// are too large for any.
void change_size_between_passes(Job& job) {
  const auto transport = make_gloo_transport(job);
  for (const int rows : {1, 1000, 200'000, 200'000, 2, 1000}) {
    const Transfer receive = transfer("1RECV_F0", 0, 1), next = transfer("1RECV_F1", 0, 1);
    transport->expect(
        job.rank(),
        job.rank() == 0 ? std::vector<Transfer>{} : std::vector<Transfer>{receive, next},
        Shapes::Fixed);
    for (const Transfer& each : {receive, next}) {
      const at::Tensor numbers =
          torch::arange(3 * rows).view({rows, 3}) + each.instruction.microbatch;
      if (job.rank() == 0) {
        transport->send({plan::counterpart(each.instruction), 0, 1}, {torch::ones(2), numbers});
        continue;
      }
      const Tensors received = transport->receive(each);
      say(received.size() == 2 && at::equal(received[1], numbers) ? std::to_string(rows) : "other");
    }
  }
}

/// Sends a microbatch 1 that is larger than microbatch 0.
void change_shape(Job& job) {
  const auto transport = make_gloo_transport(job);
  try {
    for (int m = 0; m < 2; ++m) {
      const std::string receive = fmt::format("1RECV_F{}", m);
      if (job.rank() == 0)
        transport->send(transfer(fmt::format("0SEND_F{}", m).c_str(), 0, 1),
                        {torch::ones({1}), torch::ones({m + 1, 3})});
      else
        transport->receive(transfer(receive.c_str(), 0, 1));
    }
  } catch (const plan::InputError& error) {
    transport->abort(error.what());
    throw;
  }
}

/// Sends in one order and receives in another.
void cross(Job& job) {
  const auto transport = make_gloo_transport(job);
  const char* const sends[] = {"0SEND_F0", "0SEND_F1", "0SEND_F2", "0SEND_F3"};
  const char* const receives[] = {"1RECV_F3", "1RECV_F1", "1RECV_F0", "1RECV_F2"};
  for (int m = 0; m < 4 && job.rank() == 0; ++m)
    transport->send(transfer(sends[m], 0, 1), {torch::full({2}, m)});
  for (int m = 0; m < 4 && job.rank() == 1; ++m)
    say(std::to_string(transport->receive(transfer(receives[m], 0, 1)).front()[0].item<int>()));
}

/// Returns the current time, on a clock that all processes share.
std::string now() {
  return std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Rank 0 reports when its send returns, rank 1 when it calls receive.
void local_transfer(Job& job) {
  const auto transport = make_gloo_transport(job, {.wait_until_taken = true});
  const Transfer receive = transfer("1RECV_F0", 0, 1);
  if (job.rank() == 0) {
    transport->send(transfer("0SEND_F0", 0, 1), {torch::ones({3})});
    return say(now());
  }
  transport->expect(1, {receive}, Shapes::Fixed);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  say(now());
  transport->receive(receive);
}

/// Received tensors are charged to the receiver's memory account.
void charge(Job& job) {
  const auto transport = make_gloo_transport(job);
  if (job.rank() == 0)
    return transport->send(transfer("0SEND_F0", 0, 1), {torch::ones({1000})});
  const MemoryAccount account;
  const ChargeTo charge(account);
  const Tensors received = transport->receive(transfer("1RECV_F0", 0, 1));
  say(std::to_string(account.held().value));
}

void be_alone(Job& job) {
  const auto transport = make_gloo_transport(job);
  say(shown(transport->all_gather({0}, 0, {torch::ones({1, 1})})));
}

const std::map<std::string, std::function<void(Job&)>> roles{
    {"echo", [](Job& job) { echo(job, Shapes::Fixed); }},
    {"echo-dynamic", [](Job& job) { echo(job, Shapes::Varying); }},
    {"all_gather", all_gather},
    {"change-shape", change_shape},
    {"change-size-between-passes", change_size_between_passes},
    {"cross", cross},
    {"hand-over", local_transfer},
    {"charge", charge},
    {"be-alone", be_alone},
    {"agree",
     [](Job& job) {
       require_agreement(job, {{"version", "1"}, {"Program", "a1"}});
     }},
    {"disagree",
     [](Job& job) {
       require_agreement(job, {{"version", "1"}, {"Program", job.rank() == 1 ? "b2" : "a1"}});
     }},
};

TEST_CASE("rank of a Gloo test", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    test::skip("a test starts it");
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    roles.at(place->argument)(job);
    say("end");
  } catch (const std::exception& error) {
    say(error.what());
  }
}

Ranks ranks_in(const std::string& role, int size) {
  return Ranks({.size = size, .test_case = "rank of a Gloo test", .argument = role});
}

TEST_CASE("Gloo: tensors of every kind arrive as they were sent", "[exec][gloo]") {
  Ranks ranks = ranks_in(GENERATE("echo", "echo-dynamic"), 2);
  CHECK(ranks.said(0) == "same\nsame\nsame\nsame\nsame\nsame\nend\n");
  CHECK(ranks.said(1) == "end\n");
  CHECK(ranks.status(0) == 0);
  CHECK(ranks.status(1) == 0);
}

TEST_CASE("Gloo: microbatches may have another size in the next pass", "[exec][gloo]") {
  Ranks ranks = ranks_in("change-size-between-passes", 2);
  CHECK(ranks.said(0) == "end\n");
  CHECK(ranks.said(1) ==
        "1\n1\n1000\n1000\n200000\n200000\n200000\n200000\n2\n2\n1000\n1000\nend\n");
}

TEST_CASE("Gloo: a receive takes the transfer with its name, whatever was sent first",
          "[exec][gloo]") {
  Ranks ranks = ranks_in("cross", 2);
  CHECK(ranks.said(1) == "3\n1\n0\n2\nend\n");
}

TEST_CASE("Gloo: an all-gather gives every rank the tensors of all, next to another all-gather",
          "[exec][gloo]") {
  Ranks ranks = ranks_in("all_gather", 3);
  const std::string of_three = "|| 1x21| 2x22 2x22\n";  // rows x value: of rank 0, 1 and 2
  const std::string of_two = "|| 2x22 2x22\n";
  CHECK(ranks.said(0) == of_three + of_two + "end\n");
  CHECK(ranks.said(1) == of_three + "\nend\n");
  CHECK(ranks.said(2) == of_three + of_two + "end\n");
}

TEST_CASE("Gloo: an unexpected change of shape ends all ranks, with stage, microbatch and tensor",
          "[exec][gloo]") {
  Ranks ranks = ranks_in("change-shape", 2);
  const std::string report =
      "stage 0, microbatch 1: tensor 1 is Float [2, 3], not Float [1, 3] as in the first transfer; "
      "shapes that change must be declared dynamic\n";
  CHECK(ranks.said(0) == report);
  CHECK(ranks.said(1) == report);
}

TEST_CASE("Gloo: with rendezvous transfers a send returns after the receive was called",
          "[exec][gloo]") {
  Ranks ranks = ranks_in("hand-over", 2);
  CHECK(std::stoll(ranks.said(0)) > std::stoll(ranks.said(1)));
}

TEST_CASE("Gloo: received tensors are charged to the receiver's account", "[exec][gloo]") {
  Ranks ranks = ranks_in("charge", 2);
  CHECK(ranks.said(1) == "4096\nend\n");  // 1000 floats in steps of 64 bytes, and 64 as header
}

TEST_CASE("Gloo: a job of one rank works", "[exec][gloo]") {
  Ranks ranks = ranks_in("be-alone", 1);
  CHECK(ranks.said(0) == "| 1x1\nend\n");
}

TEST_CASE("Job: ranks with different settings report it before they start", "[exec][gloo]") {
  Ranks agreeing = ranks_in("agree", 3);
  Ranks others = ranks_in("disagree", 3);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(agreeing.said(rank) == "end\n");
    CHECK(others.said(rank) ==
          "the ranks of the job do not agree\nProgram: ranks 0, 2 have a1; rank 1 has b2\n");
  }
}

}  // namespace gloo_transport_test
