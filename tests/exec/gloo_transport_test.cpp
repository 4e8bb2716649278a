#include "pipewright/exec/gloo_transport.hpp"

#include <fmt/format.h>

#include <functional>
#include <thread>

#include "exec/support/processes.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"

// Each role below is what the ranks of one test run; the test case that starts them stands under
// it.

namespace {

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

/// One of every kind; `step` makes the values differ.
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
void echo(Job& job, bool dynamic) {
  const auto transport = make_gloo_transport(job, {.dynamic_shapes = dynamic});
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
    transport->expect(job.rank(), job.rank() == 0 ? up : down);
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

const std::map<std::string, std::function<void(Job&)>> roles{
    {"echo", [](Job& job) { echo(job, false); }},
    {"echo-dynamic", [](Job& job) { echo(job, true); }},
};

TEST_CASE("rank of a Gloo test", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment,
            {.join_timeout = std::chrono::seconds(20), .timeout = std::chrono::milliseconds(2000)});
    roles.at(place->argument)(job);
    say("end");
  } catch (const std::exception& error) {
    say(error.what());
  }
}

TEST_CASE("gloo: tensors of every kind arrive as they were sent", "[exec][gloo]") {
  const auto* const role = GENERATE("echo", "echo-dynamic");
  Ranks ranks({.size = 2, .test_case = "rank of a Gloo test", .argument = role});
  CHECK(ranks.said(0) == "same\nsame\nsame\nsame\nsame\nsame\nend\n");
  CHECK(ranks.said(1) == "end\n");
  CHECK(ranks.status(0) == 0);
  CHECK(ranks.status(1) == 0);
}

}  // namespace
