// Frozen parameters.

#include <mutex>
#include <set>

#include "exec/support/engine_equals_serial.hpp"
#include "exec/support/small_layers.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"

namespace frozen_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_engine_equals_serial;
using test::error_of;
using test::linear;
using test::SyntheticData;
using test::tanh;

PipelineModule model(int pipe, const std::string& frozen, int interval = 0, int data = 1) {
  return {
      {linear("a", 4, 8), tanh("t"), linear("b", 8, 8), tanh("u"), linear("c", 8, 8),
       linear("d", 8, 2)},
      {.topology = plan::pipe_data_topology(pipe, data),
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .checkpoint_interval = interval,
       .frozen = frozen}};
}

TEST_CASE("Frozen parameters do not change, and the others are bit-identical to serial training",
          "[exec]") {
  for (const std::string frozen : {"^[ab]\\.", "bias", "c.weight", "^d", "^[abc]\\."})
    for (const int interval : {0, 1, 2}) {
      CAPTURE(frozen, interval);
      check_engine_equals_serial(model(3, frozen, interval), test::four_microbatches());
      check_engine_equals_serial(model(2, frozen, interval, 2),
                                 test::four_microbatches({.zero = 1}));
      if (interval == 0)
        check_engine_equals_serial(model(3, frozen),
                                   test::four_microbatches({.schedule = "zb-h1"}));
    }
  const SyntheticData data;
  PipelineEngine engine(model(2, "^[ab]\\."), test::four_microbatches());
  engine.set_data(batches_of(data, 4));
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : engine.executor().parameters())
    before.push_back(parameter.clone());
  engine.train_batch();
  const auto after = engine.executor().parameters();
  for (std::size_t p = 0; p < after.size(); ++p) {
    CAPTURE(p);
    CHECK(test::same_bits(after[p], before[p]) == (p < 4));
  }
}

/// Counts the elements of gradients sent back to each rank.
class Counting final : public Transport {
 public:
  explicit Counting(int ranks) : inner_(make_in_process_transport(ranks)), numbers(ranks) {}
  void send(const Transfer& transfer, Tensors tensors) override {
    if (transfer.instruction.kind == plan::InstructionKind::SendGradient)
      for (const at::Tensor& tensor : tensors)
        numbers[static_cast<std::size_t>(transfer.to)] += tensor.defined() ? tensor.numel() : 0;
    inner_->send(transfer, std::move(tensors));
  }
  Tensors receive(const Transfer& transfer) override { return inner_->receive(transfer); }
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    return inner_->all_to_all(group, rank, parts, lane);
  }
  void abort(const std::string& why) override { inner_->abort(why); }

 private:
  std::unique_ptr<Transport> inner_;

 public:
  std::vector<std::atomic<std::int64_t>> numbers;
};

TEST_CASE("No gradient is sent to a stage if it and all stages before it have nothing to train",
          "[exec]") {
  // Three stages: a t | b u | c d. Twelve samples with eight elements each.
  const SyntheticData data;
  const auto sent = [&](const std::string& frozen, int interval) {
    EngineOptions options = test::four_microbatches();
    const auto transport = std::make_shared<Counting>(3);
    options.execution.transport = transport;
    PipelineEngine engine(model(3, frozen, interval), options);
    engine.set_data(batches_of(data, 4));
    engine.train_batch();
    return std::vector<std::int64_t>{transport->numbers[0], transport->numbers[1]};
  };
  using Numbers = std::vector<std::int64_t>;
  for (const int interval : {0, 1, 2}) {
    CAPTURE(interval);
    CHECK(sent("bias", interval) == Numbers{96, 96});
    CHECK(sent("^a\\.", interval) == Numbers{0, 96});
    CHECK(sent("^[ab]\\.", interval) == Numbers{0, 0});
    CHECK(sent("^b\\.", interval) == Numbers{96, 96});
  }
}

TEST_CASE("Frozen parameters have no optimizer state, but are in checkpoints", "[exec]") {
  PipelineEngine engine(model(2, "^[ab]\\.|c.bias"), test::four_microbatches());
  std::vector<std::string> stored, states;
  for (const LayerState& layer : engine.executor().snapshot(0).layers) {
    for (const NamedTensor& tensor : layer.parameters)
      stored.push_back(layer.name + "." + tensor.name);
    for (const NamedTensor& tensor : layer.optimizer)
      if (tensor.name.ends_with("/exp_avg"))
        states.push_back(layer.name + "." + tensor.name);
  }
  using Names = std::vector<std::string>;
  CHECK(stored == Names{"a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias",
                        "d.weight", "d.bias"});
  CHECK(states == Names{"c.weight/exp_avg", "d.weight/exp_avg", "d.bias/exp_avg"});
}

TEST_CASE("A layer is frozen completely, or by the names of its parameters", "[exec]") {
  const auto trained = [](const LayerSpec& layer) {
    std::vector<std::string> names;
    for (const auto& parameter : build_layer({layer}, 0, 0)->named_parameters())
      if (parameter.value().requires_grad())
        names.push_back(parameter.key());
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(trained(linear("a", 4, 8)) == Names{"weight", "bias"});
  CHECK(trained(frozen(linear("a", 4, 8))).empty());
  CHECK(trained(frozen(linear("a", 4, 8), "^b")) == Names{"weight"});
  CHECK(parameter_counts({frozen(linear("a", 4, 8), "^b")}) == std::vector<std::int64_t>{32});
  CHECK(error_of([] { model(2, "^e\\."); }) ==
        "frozen:^e\\. matches no parameter, by LAYER.PARAMETER, of the layers a, t, b, u, c or d");
  CHECK(error_of([] {
          model(2, "(a");
        }).starts_with("frozen:(a: this is not a regular expression: "));
}

TEST_CASE("A shared weight is frozen in all of its layers or in none", "[exec]") {
  const auto tied = [](const LayerSpec& layer) { return TiedLayerSpec{"key", "weight", layer}; };
  const std::vector<LayerSpec> layers{tied(linear("a", 4, 4)), tied(frozen(linear("b", 4, 4)))};
  CHECK(error_of([&] { build_layer(layers, 1, 0); }) ==
        "layers a and b are tied by key 'key', but of their weights 'weight' and 'weight' one is "
        "frozen and one is not");
}

}  // namespace frozen_test
