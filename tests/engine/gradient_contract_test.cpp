// The check of a plan's gradients, and its report of each fault.

#include "pipewright/engine/gradient_contract.hpp"

#include <fmt/format.h>
#include <torch/nn.h>

#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace gradient_contract_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
using test::SyntheticData;
namespace nn = torch::nn;

struct Shape {
  int pipe = 2;
  int data = 1;
  int stages_per_rank = 1;
  int interval = 0;
  bool tied = false;
};

PipelineModule model(const Shape& shape = {}) {
  const auto linear = [](const std::string& name) {
    return module_layer(name, [] { return nn::Linear(4, 4); });
  };
  const auto tied = [&](const LayerSpec& layer) -> LayerSpec {
    return shape.tied ? TiedLayerSpec{"key", "weight", layer} : layer;
  };
  const auto half = [](const at::Tensor& x) { return x.tanh().narrow(1, 0, 2); };
  return {
      {tied(linear("a")), random_layer(module_layer("drop", [] { return nn::Dropout(0.3); })),
       frozen(linear("b")), tied(linear("c")), function_layer("h", half)},
      {.topology = plan::pipe_data_topology(shape.pipe, shape.data),
       .stages_per_rank = shape.stages_per_rank,
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .checkpoint_interval = shape.interval}};
}

EngineOptions options_of(const std::string& schedule = "1f1b", int zero = 0) {
  return {.train_batch_size = 12, .microbatch_size = 3, .schedule = schedule, .zero = zero};
}

/// Four microbatches with different weights.
BatchSource batch() {
  static const SyntheticData data;
  return [source = batches_of(data, 4), m = 0]() mutable -> std::optional<Batch> {
    auto next = source();
    next->counts = 1 + m++ % 4;
    return next;
  };
}

TEST_CASE("Gradients are right under every plan", "[exec]") {
  struct Plan {
    Shape shape;
    EngineOptions options;
    int checked;  // on each rank: the parameters of its stages
  };
  const std::vector<Plan> plans{
      {{.pipe = 1}, options_of(), 4},
      {{.pipe = 2}, options_of(), 4},
      {{.pipe = 5}, options_of("zb-h1"), 4},
      {{.pipe = 2, .stages_per_rank = 2}, options_of("interleaved-1f1b"), 4},
      {{.pipe = 2, .data = 2}, options_of(), 8},
      {{.pipe = 2, .data = 2, .tied = true}, options_of(), 8},
      {{.pipe = 2, .data = 2}, options_of("1f1b", 1), 8},
      {{.pipe = 2, .data = 2}, options_of("1f1b", 2), 8},
      {{.pipe = 2, .data = 2}, options_of("1f1b", 3), 8},
      {{.pipe = 2, .interval = 1}, options_of("gpipe"), 4},
      {{.pipe = 2}, options_of("chimera"), 8},
  };
  for (const Plan& plan : plans) {
    CAPTURE(plan.options.schedule.name, plan.options.zero, plan.shape.pipe, plan.shape.data);
    const GradientContract contract = gradient_contract(model(plan.shape), plan.options, batch());
    CHECK(to_string(contract).ends_with(" gradients of 4 microbatches are right\n"));
    if (plan.options.zero == 0)
      CHECK(contract.checked == plan.checked);
  }
}

TEST_CASE("A custom Program is checked unchanged", "[exec]") {
  EngineOptions options = options_of();
  options.schedule = plan::lower(plan::make_gpipe(2, 4), {.share_loss = true});
  CHECK(gradient_contract(model(), options, batch()).holds());
  // A Program that omits an all-reduce over replicas is rejected earlier.
  auto program = plan::lower(plan::make_gpipe(2, 2), {.replicas = 2, .share_loss = true});
  for (auto& instructions : program.ranks)
    std::erase_if(instructions, [](const plan::Instruction& i) {
      return i.kind == plan::InstructionKind::ReduceGradients;
    });
  options.schedule = program;
  CHECK(error_of([&] {
          gradient_contract(model({.data = 2}), options, batch());
        }).find("its gradients are not reduced over its replicas: each needs a 0REDUCE_GRAD") !=
        std::string::npos);
}

TEST_CASE("A gradient scaled after reduction is reported with rank, parameter and factor",
          "[exec]") {
  EngineOptions options = options_of();
  options.before_step = [](const StepGradients& shown) {
    for (const NamedGradient& gradient : shown.gradients)
      if (shown.rank == 1 && gradient.what.name == "weight")
        gradient.value.mul_(0.5);
  };
  CHECK(to_string(gradient_contract(model(), options, batch())) ==
        "rank 1, stage 1, c.weight: microbatches 0, 1, 2, 3 times 0.5\n");
  options.before_step = [](const StepGradients& shown) {
    for (const NamedGradient& gradient : shown.gradients)
      if (gradient.what.layer == "a" && gradient.what.name == "bias")
        gradient.value.add_(1);
  };
  const GradientContract contract = gradient_contract(model(), options, batch());
  REQUIRE(contract.faults.size() >= 1);
  for (const GradientFault& fault : contract.faults) {
    CHECK(fault.parameter == "bias");
    CHECK(fault.is_mixed);
  }
}

/// Forwards all calls, modified by `corrupt`.
class Corrupt final : public Transport {
 public:
  using Change = std::function<void(const Transfer&, Tensors&)>;
  Corrupt(int ranks, Change change) : inner_(make_in_process_transport(ranks)), change_(change) {}
  void send(const Transfer& transfer, Tensors tensors) override {
    if (change_)
      change_(transfer, tensors);
    inner_->send(transfer, std::move(tensors));
  }
  Tensors receive(const Transfer& transfer) override { return inner_->receive(transfer); }
  /// Without a change, drops the gradients that other ranks contribute to a reduction.
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    auto received = inner_->all_to_all(group, rank, parts, lane);
    const auto is_part_of_sum = [](const Tensors& tensors) {
      return !tensors.empty() && tensors.front().scalar_type() == at::kLong;
    };
    for (std::size_t member = 0; !change_ && member < group.size(); ++member)
      if (group[member] != rank && is_part_of_sum(received[member]))
        for (std::size_t t = 1; t < received[member].size(); ++t)
          received[member][t] = received[member][t] * 0;
    return received;
  }
  void abort(const std::string& why) override { inner_->abort(why); }

 private:
  std::unique_ptr<Transport> inner_;
  Change change_;
};

std::string told(const Shape& shape, const Corrupt::Change& change) {
  EngineOptions options = options_of();
  options.execution.transport = std::make_shared<Corrupt>(shape.pipe * shape.data, change);
  return to_string(gradient_contract(model(shape), options, batch()));
}

Corrupt::Change times(double factor, int microbatch) {
  return [factor, microbatch](const Transfer& transfer, Tensors& tensors) {
    if (transfer.instruction.kind == plan::InstructionKind::SendGradient &&
        transfer.instruction.microbatch == microbatch)
      for (at::Tensor& tensor : tensors)
        tensor = tensor * factor;
  };
}

TEST_CASE("A microbatch whose backward is lost or doubled is reported at the right place",
          "[exec]") {
  CHECK(told({.pipe = 2}, times(1, 2)) == "all 4 gradients of 4 microbatches are right\n");
  CHECK(told({.pipe = 2}, times(0, 2)) ==
        "rank 0, stage 0, a.bias: microbatch 2 lost\n"
        "rank 0, stage 0, a.weight: microbatch 2 lost\n");
  CHECK(told({.pipe = 2}, times(2, 1)) ==
        "rank 0, stage 0, a.bias: microbatch 1 times 2\n"
        "rank 0, stage 0, a.weight: microbatch 1 times 2\n");
}

TEST_CASE("A gradient reduction that loses the other replicas' parts is reported on each rank",
          "[exec]") {
  // Each rank reduces its own shard, a's or c's, to which its own pipeline contributes a part.
  std::string expected;
  for (const char* const rank : {"0", "1"})
    for (const char* const lost : {"a.bias: microbatches 2, 3", "a.weight: microbatches 2, 3",
                                   "c.bias: microbatches 0, 1", "c.weight: microbatches 0, 1"})
      expected += fmt::format("rank {}, stage 0, {} lost\n", rank, lost);
  CHECK(told({.pipe = 1, .data = 2}, {}) == expected);
}

TEST_CASE("Layers whose gradients cannot be checked are rejected", "[exec]") {
  const SyntheticData data;
  CHECK(error_of([&] {
          gradient_contract(model(), options_of(),
                            batches_of({{at::ones({6, 4})}, {at::ones({6, 2})}}, 3));
        }) == "the gradients of 4 microbatches are to be checked, but the data has only 2");
  EngineOptions options = options_of();
  options.execution.expert_ranks = 2;
  CHECK(error_of([&] { gradient_contract(model(), options, batch()); }) ==
        "the gradients of layers that are partitioned among ranks cannot be checked: use one "
        "tensor-parallel and one expert-parallel rank");
}

}  // namespace gradient_contract_test
