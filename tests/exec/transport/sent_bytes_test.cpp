// Compares the bytes that gradient sums over a stage's replicas send between processes with the
// bytes that the simulator prices.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "exec/support/processes.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/structure/durations.hpp"
#include "stage/gradient_sums.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "transport/gloo_collectives.hpp"

namespace sent_bytes_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::Ranks;
using test::say;
using Kind = plan::InstructionKind;

/// A layer with a large parameter and two small ones, with lengths that have no common factors.
class Three final : public Layer {
 public:
  Three() {
    register_parameter("a", torch::zeros({611, 431}));
    register_parameter("b", torch::zeros({7}));
    register_parameter("c", torch::zeros({333}));
  }
  at::Tensor forward(const at::Tensor& input, const CallContext&) override { return input; }
};

constexpr plan::Bytes all_bytes{(611 * 431 + 7 + 333) * 4};

constexpr std::array kinds{Kind::ReduceGradients, Kind::ScatterGradients, Kind::GatherParameters};

/// Only the collectives, over Gloo.
class OverGloo final : public Transport {
 public:
  explicit OverGloo(Job& job) : collectives_(job) {}

  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    return collectives_.all_to_all(group, rank, parts, lane);
  }
  void send(const Transfer&, Tensors) override { throw std::logic_error("no transfers here"); }
  Tensors receive(const Transfer&) override { throw std::logic_error("no transfers here"); }
  void abort(const std::string& why) override { collectives_.end(why); }

  plan::Bytes sent() const { return collectives_.sent(); }

 private:
  GlooCollectives collectives_;
};

/// Returns one replica of the stage, with the gradients of one microbatch, which are the rank plus
/// 1.
std::unique_ptr<Stage> stage_of(const Job& job, const TrainingSetup& setup, Shard shard) {
  auto stage = std::make_unique<Stage>(StageSpec{.index = 0,
                                                 .first = 0,
                                                 .last = 1,
                                                 .microbatches = {{job.rank(), {job.rank()}}},
                                                 .shard = shard},
                                       setup);
  const at::NoGradGuard no_grad;
  stage->gradients().begin(job.rank());
  for (const at::Tensor& parameter : stage->optimizer().parameters())
    parameter.grad().fill_(job.rank() + 1);
  stage->gradients().end(job.rank());
  return stage;
}

/// Reports how many bytes each of `kinds` has sent, in order.
void reduce_and_gather(Job& job) {
  OverGloo transport(job);
  Members all{.ranks = {}, .self = job.rank(), .transport = &transport};
  for (int rank = 0; rank < job.size(); ++rank)
    all.ranks.push_back(rank);
  TrainingSetup setup;
  setup.layers = {{.name = "three", .build = [] { return std::make_shared<Three>(); }}};
  const auto sent_by = [&](const auto& collective) {
    const plan::Bytes before = transport.sent();
    collective();
    say(std::to_string((transport.sent() - before).value));
  };
  const auto whole = stage_of(job, setup, {});
  sent_by([&] { reduce_copies(*whole, all, SumOf::Whole); });
  const auto sharded = stage_of(job, setup, {job.rank(), job.size()});
  sent_by([&] { reduce_copies(*sharded, all, SumOf::Shard); });
  sent_by([&] { gather_shards(*sharded, all); });

  whole->gradients().finish();
  const float sum = static_cast<float>(job.size() * (job.size() + 1)) / 2;
  for (const at::Tensor& parameter : whole->optimizer().parameters())
    if (!at::equal(parameter.grad(), at::full_like(parameter, sum)))
      say("another sum");
}

TEST_CASE("rank that counts what it sends", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    test::skip("a test starts it");
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    reduce_and_gather(job);
  } catch (const std::exception& error) {
    say(error.what());
  }
}

/// Returns the bytes in the simulator's price: its seconds, at one byte per second and no latency.
double priced(Kind kind, int copies) {
  const sim::Structure structure(
      plan::lower(plan::make_schedule("gpipe", 1, 1),
                  {.replicas = copies, .zero = kind != Kind::ReduceGradients}));
  sim::StepCosts costs;
  costs.stages.resize(1);
  costs.stages[0].gradients = costs.stages[0].parameters = all_bytes;
  costs.replicas = costs.cluster.devices_per_node = copies;
  costs.cluster.within_node = {.latency = {}, .bandwidth_per_s = 1};
  sim::Durations durations;
  durations.fill(structure, costs);
  for (int event = 0; event < structure.size(); ++event)
    if (structure.events()[event].instruction->kind == kind)
      return durations.of(structure, event).held;
  throw std::logic_error("the Program has no such instruction");
}

TEST_CASE(
    "Gloo: each replica sends 2(n - 1)/n of the gradients for their sum, half of that for its "
    "shard or to gather, as the simulator prices it",
    "[exec][gloo][reductions]") {
  for (const int copies : {2, 3, 4}) {
    const double once = (copies - 1.0) / copies * static_cast<double>(all_bytes.value);
    Ranks ranks({.size = copies, .test_case = "rank that counts what it sends"});
    for (int rank = 0; rank < copies; ++rank) {
      std::istringstream said(ranks.said(rank));
      for (const Kind kind : kinds) {
        CAPTURE(copies, rank, plan::traits_of(kind).word);
        const double wanted = kind == Kind::ReduceGradients ? 2 * once : once;
        CHECK(priced(kind, copies) == Approx(wanted));
        double sent = 0;
        REQUIRE(said >> sent);
        // Headers of half a KiB and a few labels go to each other rank, and cuts lie at multiples
        // of 64 elements.
        CHECK(std::abs(sent - wanted) < 6 * 1024);
      }
      std::string more;
      CHECK_FALSE(said >> more);
    }
  }
}

}  // namespace sent_bytes_test
