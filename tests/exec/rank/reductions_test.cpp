#include "pipewright/exec/rank/reductions.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <thread>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "stage/gradient_sums.hpp"
#include "support/catch.hpp"

namespace reductions_test {

using namespace pipewright::exec;

/// Forwards all calls and counts the bytes of floating-point numbers that each rank sends to
/// others.
class Counting final : public Transport {
 public:
  explicit Counting(int ranks)
      : inner_(make_in_process_transport(ranks)), sent_(static_cast<std::size_t>(ranks)) {}

  void send(const Transfer& transfer, Tensors tensors) override {
    inner_->send(transfer, std::move(tensors));
  }
  Tensors receive(const Transfer& transfer) override { return inner_->receive(transfer); }
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    for (std::size_t m = 0; m < group.size(); ++m)
      for (const at::Tensor& tensor : parts[m])
        if (group[m] != rank && at::isFloatingType(tensor.scalar_type()))
          sent_[static_cast<std::size_t>(rank)] += static_cast<std::int64_t>(tensor.nbytes());
    return inner_->all_to_all(group, rank, parts, lane);
  }
  void abort(const std::string& why) override { inner_->abort(why); }

  std::int64_t sent_by(int rank) const { return sent_[static_cast<std::size_t>(rank)]; }

 private:
  std::unique_ptr<Transport> inner_;
  std::vector<std::int64_t> sent_;
};

/// A layer with a large parameter and two small ones, with lengths that have no common factors.
class Three final : public Layer {
 public:
  Three() {
    register_parameter("a", torch::zeros({41, 53}));
    register_parameter("b", torch::zeros({7}));
    register_parameter("c", torch::zeros({333}));
  }
  at::Tensor forward(const at::Tensor& input, const CallContext&) override { return input; }
};

TrainingSetup setup_of_three() {
  TrainingSetup setup;
  setup.layers = {{.name = "three", .build = [] { return std::make_shared<Three>(); }}};
  return setup;
}

constexpr std::int64_t all_bytes = (41 * 53 + 7 + 333) * 4;

at::Tensor gradient_of(int microbatch, const at::Tensor& parameter) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1 + microbatch));
  return at::randn(parameter.sizes(), generator) * std::pow(10.0, microbatch % 3);
}

/// Reduces `groups` groups for each replica, with one microbatch per group. Returns the sums of
/// each replica.
std::vector<Tensors> reduced(int copies, int groups, SumOf wanted, Counting& transport) {
  const TrainingSetup setup = setup_of_three();
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<int> everybody;
  for (int copy = 0; copy < copies; ++copy) {
    StageSpec spec{.index = 0, .first = 0, .last = 1};
    for (int group = copy * groups; group < (copy + 1) * groups; ++group)
      spec.microbatches[group] = {group};
    everybody.push_back(copy);
    stages.push_back(std::make_unique<Stage>(std::move(spec), setup));
    GradientSums& sums = stages.back()->gradients();
    for (int group = copy * groups; group < (copy + 1) * groups; ++group) {
      sums.begin(group);
      for (const at::Tensor& parameter : stages.back()->optimizer().parameters())
        parameter.grad().add_(gradient_of(group, parameter));
      sums.end(group);
    }
  }
  std::vector<std::thread> threads;
  for (int copy = 0; copy < copies; ++copy)
    threads.emplace_back([&, copy] {
      Stage& stage = *stages[static_cast<std::size_t>(copy)];
      reduce_copies(stage, {everybody, copy, &transport}, wanted);
      stage.gradients().finish();
    });
  for (std::thread& thread : threads)
    thread.join();
  std::vector<Tensors> all;
  for (const auto& stage : stages) {
    auto& gradients = all.emplace_back();
    for (const at::Tensor& parameter : stage->optimizer().parameters())
      gradients.push_back(parameter.grad());
  }
  return all;
}

/// Returns the sums of the groups in order, as serial training adds them.
Tensors in_order(int groups) {
  const Three layer;
  Tensors sums;
  for (const at::Tensor& parameter : layer.parameters()) {
    at::Tensor sum = gradient_of(0, parameter);
    for (int group = 1; group < groups; ++group)
      sum.add_(gradient_of(group, parameter));
    sums.push_back(sum);
  }
  return sums;
}

TEST_CASE("Replicas send what a ring sends, and have the bits of the sum in order",
          "[exec][reductions]") {
  for (const int copies : {2, 3, 4})
    for (const int groups : {1, 2}) {
      CAPTURE(copies, groups);
      Counting transport(copies);
      const auto sums = reduced(copies, groups, SumOf::Whole, transport);
      const Tensors expected = in_order(copies * groups);
      for (const Tensors& own : sums)
        for (std::size_t p = 0; p < expected.size(); ++p)
          CHECK(at::equal(own[p], expected[p]));
      std::int64_t sent = 0;
      for (int copy = 0; copy < copies; ++copy)
        sent += transport.sent_by(copy);
      // Each of n ranks sends (n - 1)/n of the gradients of each group, and then of their sum.
      CHECK(sent == (groups + 1) * (copies - 1) * all_bytes);
    }
}

TEST_CASE("With sharding each replica has its own part of the sum, for half of the bytes",
          "[exec][reductions]") {
  for (const int copies : {2, 3, 4}) {
    CAPTURE(copies);
    Counting transport(copies);
    const auto sums = reduced(copies, 1, SumOf::Shard, transport);
    const Tensors expected = in_order(copies);
    const ShardsOf shards(expected, copies);
    std::int64_t sent = 0;
    for (int copy = 0; copy < copies; ++copy) {
      for (const Slice& slice : shards.of(copy))
        CHECK(at::equal(slice.of(sums[static_cast<std::size_t>(copy)][slice.parameter]),
                        slice.of(expected[slice.parameter])));
      // Cuts lie at multiples of 64 elements.
      CHECK(std::abs(static_cast<double>(transport.sent_by(copy)) -
                     (copies - 1.0) / copies * all_bytes) <= 2 * 64 * 4 * 3);
      sent += transport.sent_by(copy);
    }
    CHECK(sent == (copies - 1) * all_bytes);
  }
}

}  // namespace reductions_test
