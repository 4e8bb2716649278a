// Features of a training that are independent of the schedule, each compared with the serial
// trainer, bit for bit.

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <utility>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"

namespace training_features_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::make;
using test::partition_for;
using test::schedules;
using test::small_partition;
using test::small_setup;

TEST_CASE("Replicas sum their gradients as serial training does", "[exec]") {
  for (const auto& s : schedules())
    for (const bool shard : {false, true}) {
      INFO(plan::to_string(s));
      for (const int replicas : {2, 3})
        check_equals_serial(plan::lower(s, {.replicas = replicas, .zero = shard}), partition_for(s),
                            small_setup(), {.replicas = replicas});
    }
}

TEST_CASE("Gradient groups make the result independent of the number of pipelines", "[exec]") {
  auto setup = small_setup();
  setup.gradient_groups = 4;
  std::vector<std::vector<at::Tensor>> results;
  for (const int replicas : {1, 2, 4}) {
    const auto s = make("1f1b", 2, 8 / replicas);
    Executor executor(plan::lower(s, {.replicas = replicas}), partition_for(s), setup,
                      {.replicas = replicas});
    executor.step(0);
    executor.step(1);
    results.push_back(executor.parameters());
  }
  for (const auto& result : results)
    for (std::size_t p = 0; p < result.size(); ++p)
      CHECK(test::same_bits(result[p], results.front()[p]));
  setup.gradient_groups = 3;
  CHECK(test::error_of([&] {
          const auto s = make("1f1b", 2, 4);
          Executor(plan::lower(s, {.replicas = 2}), partition_for(s), setup, {.replicas = 2});
        }).starts_with("3 gradient groups for 8 microbatches: each of the 2 pipelines"));
}

TEST_CASE("With exact mode off sums have the order of the schedule, and differ only by rounding",
          "[exec]") {
  auto setup = small_setup();
  setup.exact = false;
  setup.clip_norm = 0.05;
  for (const auto& s : schedules())
    for (const auto& [replicas, groups] : {std::pair(1, 0), std::pair(2, 0), std::pair(2, 1)}) {
      INFO(plan::to_string(s) << groups);
      setup.gradient_groups = groups;  // fewer than pipelines: only with exact mode off
      const auto program = plan::lower(s, {.replicas = replicas, .gradient_norm = true});
      Executor executor(program, partition_for(s), setup, {.replicas = replicas});
      SerialTrainer serial(setup, replicas * program.microbatches);
      for (int step = 0; step < 3; ++step) {
        const auto result = executor.step(step).value(), expected = serial.step(step);
        CHECK(result.loss == Approx(expected.loss).epsilon(1e-5));
        CHECK(result.gradient_norm == Approx(expected.gradient_norm).epsilon(1e-5));
      }
    }
}

TEST_CASE("The global norm is clipped equally under every plan", "[exec]") {
  auto setup = small_setup();
  setup.clip_norm = 0.05;
  for (const auto& s : schedules())
    check_equals_serial(plan::lower(s, {.gradient_norm = true}), partition_for(s), setup);
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s, {.gradient_norm = true}), partition_for(s), setup);
  CHECK(executor.step(0).value().gradient_norm > setup.clip_norm);
}

/// Lowers a schedule such that every backward recomputes `layers` layers at a time.
plan::Program recomputing(const plan::Schedule& s, int layers) {
  return layers == 0
             ? plan::lower(s)
             : plan::lower(s, {.recompute = plan::RecomputeMode::Full, .recompute_layers = layers});
}

TEST_CASE("Recomputed layers, in intervals or by the schedule, give the same bits", "[exec]") {
  for (const auto& s : schedules())
    for (const int layers : {1, 2})
      check_equals_serial(recomputing(s, layers), partition_for(s), small_setup());
  for (const std::string name : {"gpipe", "zb-h1"}) {
    const auto s = plan::with_recompute(make(name, 3, 4));
    check_equals_serial(plan::lower(s), partition_for(s), small_setup());
  }
}

TEST_CASE("Recomputation needs less memory", "[exec]") {
  const auto peak = [](int interval) {
    plan::Bytes most{0};
    const auto s = make("gpipe", 1, 4);
    Executor executor(
        recomputing(s, interval), partition_for(s), small_setup(),
        {.observer = [&](const InstructionRecord& record) { most = std::max(most, record.peak); }});
    executor.step(0);
    return most.value;
  };
  CHECK(peak(1) < peak(0));
}

/// Drops half of its input, chosen by LibTorch's own generator.
class Dropout final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    return at::dropout(input, 0.5, context.training);
  }
};

TEST_CASE("A layer that uses the process's generator draws the same numbers under every plan",
          "[exec]") {
  for (const int interval : {0, 1}) {
    auto setup = small_setup();
    setup.layers[2] = {"dropout", [] { return std::make_shared<Dropout>(); }, {}, {}, true};
    setup.layers[4] = setup.layers[2];
    for (const auto& s : schedules())
      check_equals_serial(recomputing(s, interval), partition_for(s), setup);
  }
}

TEST_CASE("Selective recomputation gives the same bits, and needs less memory", "[exec]") {
  for (const auto& s : schedules()) {
    INFO(plan::to_string(s));
    check_equals_serial(plan::lower(s, {.recompute = plan::RecomputeMode::Selective}),
                        partition_for(s), small_setup());
  }
  const auto peak = [](plan::RecomputeMode mode) {
    plan::Bytes most{0};
    const auto s = make("gpipe", 1, 4);
    Executor executor(
        plan::lower(s, {.recompute = mode}), partition_for(s), small_setup(),
        {.observer = [&](const InstructionRecord& record) { most = std::max(most, record.peak); }});
    executor.step(0);
    return most.value;
  };
  CHECK(peak(plan::RecomputeMode::Selective) < peak(plan::RecomputeMode::None));
}

TEST_CASE("16-bit training equals serial 16-bit training", "[exec]") {
  for (const auto precision : {at::kBFloat16, at::kHalf})
    for (const auto& s : schedules()) {
      auto setup = small_setup();
      setup.precision = precision;
      setup.loss_scaling = {.scale = 1024, .dynamic = true, .growth_interval = 2};
      check_equals_serial(plan::lower(s, {.gradient_norm = true}), partition_for(s), setup);
    }
}

TEST_CASE("Optimizers and learning rates", "[exec]") {
  for (const auto kind : {plan::Optimizer::Sgd, plan::Optimizer::SgdMomentum}) {
    auto setup = small_setup();
    setup.optimizer.kind = kind;
    setup.optimizer.warm_up_steps = 2;
    for (const auto& s : schedules())
      check_equals_serial(plan::lower(s), partition_for(s), setup);
  }
}

/// Returns infinity when the given microbatch of step 1 passes.
class Overflow final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    return context.step == 1 && context.microbatch == 2 ? input / 0.0 : input * 1;
  }
};

TEST_CASE("A gradient that is not finite on one stage skips the step on all, and halves the scale",
          "[exec]") {
  auto setup = small_setup();
  setup.layers[3] = {"overflow", [] { return std::make_shared<Overflow>(); }};
  setup.loss_scaling = {.scale = 8, .dynamic = true};
  for (const auto& s : schedules())
    check_equals_serial(plan::lower(s, {.gradient_norm = true}), partition_for(s), setup);
  const auto s = make("1f1b", 3, 4);
  for (const int zero : {1, 2, 3})
    check_equals_serial(
        plan::lower(make("1f1b", 3, 2), {.replicas = 2, .zero = zero, .gradient_norm = true}),
        partition_for(s), setup, {.replicas = 2});
  Executor executor(plan::lower(s, {.gradient_norm = true}), partition_for(s), setup);
  CHECK_FALSE(executor.step(0).value().skipped);
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : executor.parameters())
    before.push_back(parameter.detach().clone());
  CHECK(executor.step(1).value().skipped);
  for (std::size_t p = 0; p < before.size(); ++p)
    CHECK(test::same_bits(executor.parameters()[p], before[p]));
  CHECK(executor.loss_scale() == 4);
}

/// The first and the last layer, which share one matrix [32, 16].
class TiedEmbedding final : public Layer {
 public:
  TiedEmbedding() : table_(register_parameter("table", at::randn({32, 16}))) {}
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return at::embedding(table_, input);
  }

 private:
  at::Tensor table_;
};
class TiedHead final : public Layer {
 public:
  TiedHead() : weight_(register_parameter("weight", at::randn({32, 16}))) {}
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return at::linear(input, weight_);
  }

 private:
  at::Tensor weight_;
};

TrainingSetup tied_setup() {
  auto setup = small_setup();
  setup.layers.front() = {
      "embedding", [] { return std::make_shared<TiedEmbedding>(); }, "words", {"table"}};
  setup.layers.back() = {"head", [] { return std::make_shared<TiedHead>(); }, "words", {"weight"}};
  setup.clip_norm = 0.5;  // the shared weight counts once
  return setup;
}

TEST_CASE("Tied weights: every schedule sums gradients once and keeps the weights equal",
          "[exec]") {
  for (const auto& s : schedules())
    for (const int replicas : {1, 2}) {
      INFO(plan::to_string(s));
      const int stages = plan::stage_count(s);
      const plan::LoweringOptions options{
          .replicas = replicas,
          .tied_stages = stages > 1 ? std::vector<int>{0, stages - 1} : std::vector<int>{},
          .gradient_norm = true};
      check_equals_serial(plan::lower(s, options), partition_for(s), tied_setup(),
                          {.replicas = replicas});
      Executor executor(plan::lower(s, options), partition_for(s), tied_setup(),
                        {.replicas = replicas});
      for (int step = 0; step < 2; ++step) {
        executor.step(step);
        CHECK(test::same_bits(executor.parameters().front(), executor.parameters().back()));
      }
    }
}

TEST_CASE("Tied weights that the program does not sum are rejected", "[exec]") {
  const auto s = make("1f1b", 2, 2);
  CHECK(test::error_of([&] {
          Executor(plan::lower(s, {.gradient_norm = true}), partition_for(s), tied_setup());
        }) ==
        "stages 0, 1 share the weight 'words', but the program does not sum its gradients on all "
        "of them. Lower the schedule with these tied stages");
  auto setup = tied_setup();
  setup.layers.back().tied_weights = {"wheight"};
  CHECK(test::error_of([&] {
          Executor(plan::lower(s, {.tied_stages = {0, 1}, .gradient_norm = true}), partition_for(s),
                   setup);
        }) == "layer head: tied by key 'words', but it has no parameter 'wheight'");
}

TEST_CASE("An evaluation between two steps changes nothing, and equals the serial one", "[exec]") {
  auto setup = small_setup();
  setup.layers[2] = {"dropout", [] { return std::make_shared<Dropout>(); }, {}, {}, true};
  const test::SyntheticTokens data;
  int evaluated = 0;
  for (const auto& s : schedules()) {
    if (plan::placement_of(s).is_bidirectional())
      continue;
    ++evaluated;
    INFO(plan::to_string(s));
    const auto program = plan::lower(s);
    Executor executor(program, partition_for(s), setup);
    SerialTrainer serial(setup, program.microbatches);
    plan::ScheduleRequest request;
    request.name = "inference";
    request.ranks = static_cast<int>(program.ranks.size());
    request.microbatches = 3;
    request.rank_of_stage = program.placement.routes.front();
    const auto inference = plan::lower(plan::make_schedule(request));
    for (int step = 0; step < 2; ++step) {
      CHECK(executor.step(step).value().loss == serial.step(step).loss);
      const auto seen = executor.evaluate(inference, data, step + 7, {.outputs = true}).value();
      const auto expected = serial.evaluate(data, 3, step + 7);
      CHECK(seen.loss == expected.loss);
      REQUIRE(seen.outputs.size() == 3);
      for (std::size_t m = 0; m < 3; ++m)
        CHECK(test::same_bits(seen.outputs[m].at(0), expected.outputs[m].at(0)));
    }
  }
  CHECK(evaluated >= 5);
}

/// Counts calls of matrix products while it exists.
class ProductCount {
 public:
  ProductCount() {
    count = 0;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call)
                                       -> std::unique_ptr<at::ObserverContext> {
          const std::string_view name = call.name();
          if (name == "aten::mm" || name == "aten::addmm")
            ++count;
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~ProductCount() { at::removeCallback(handle_); }
  static inline std::atomic<int> count{0};

 private:
  at::CallbackHandle handle_;
};

class Perceptron final : public Layer {
 public:
  Perceptron() : linear_(register_module("linear", torch::nn::Linear(16, 16))) {}
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return at::relu(linear_->forward(input));
  }

 private:
  torch::nn::Linear linear_;
};

TEST_CASE("I and W together multiply as many matrices as B, and each does its own half", "[exec]") {
  // Three linear layers after the one that makes a matrix of the tokens.
  auto setup = small_setup();
  setup.layers = {setup.layers.front()};
  for (const char* name : {"one", "two", "three"})
    setup.layers.push_back({name, [] { return std::make_shared<Perceptron>(); }});
  setup.loss = [](const Tensors& outputs, const Tensors&) { return outputs.front().mean(); };
  std::map<std::string, int> products;  // by action
  const auto count = [&](const std::string& csv) {
    const ProductCount counting;
    int before = 0;
    Executor executor(plan::lower(plan::parse_csv(csv, "s.csv")), plan::Partition{{0, 4}}, setup,
                      {.observer = [&](const InstructionRecord& record) {
                        products[to_string(record.instruction)] = ProductCount::count - before;
                        before = ProductCount::count;
                      }});
    executor.step(0);
  };
  count("0F0,0B0\n");
  CHECK(products.at("0F0") == 3);
  CHECK(products.at("0B0") == 6);
  count("0F0,0I0,0W0\n");
  CHECK(products.at("0I0") == 3);
  CHECK(products.at("0W0") == 3);
}

TEST_CASE("I frees the tensors that only it needs", "[exec]") {
  plan::Bytes before, after_i, after_w;
  const auto s = plan::parse_csv("0F0,0I0,0W0\n", "s.csv");
  Executor executor(plan::lower(s), small_partition(1), small_setup(),
                    {.observer = [&](const InstructionRecord& record) {
                      const std::string action = to_string(record.instruction);
                      if (action == "0F0")
                        before = record.held_after;
                      if (action == "0I0")
                        after_i = record.held_after;
                      if (action == "0W0")
                        after_w = record.held_after;
                    }});
  executor.step(0);
  executor.step(1);
  CHECK(after_w < before);
  CHECK(after_i != before);
}

TEST_CASE("Twenty steps hold no more memory than one", "[exec]") {
  for (const auto& s : schedules()) {
    INFO(plan::to_string(s));
    std::vector<std::vector<std::int64_t>> held(s.ranks.size());  // at the start of each step
    std::vector<int> heard(s.ranks.size(), -1);                   // the step of the last record
    int now = 0;
    Executor executor(plan::lower(s), partition_for(s), small_setup(),
                      {.observer = [&](const InstructionRecord& record) {
                        const auto rank = static_cast<std::size_t>(record.rank);
                        if (std::exchange(heard[rank], now) != now)
                          held[rank].push_back(record.held_before.value);
                      }});
    for (; now < 20; ++now)
      executor.step(now);
    for (const auto& values : held)
      CHECK(values == std::vector<std::int64_t>(20, values.front()));
  }
}

}  // namespace training_features_test
