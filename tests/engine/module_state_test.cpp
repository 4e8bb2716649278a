// Weights of an engine by name: returned, and loaded from files with other names, or with fewer or
// more of them.

#include "pipewright/engine/module_state.hpp"

#include <torch/nn.h>

#include "exec/support/small_gpt.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace module_state_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
namespace nn = torch::nn;

Loss squares() {
  return [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0));
  };
}

LayerSpec frozen_linear(const std::string& name) {
  return module_layer(name, [] {
    nn::Linear linear(8, 8);
    for (at::Tensor& parameter : linear->parameters())
      parameter.set_requires_grad(false);
    return linear;
  });
}

PipelineModule small_model(int pipe, int data = 1, int seed = 0) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  return {{linear("a", 4, 8),
           module_layer("norm",
                        [] { return nn::BatchNorm1d(nn::BatchNorm1dOptions(8).momentum(0.5)); }),
           frozen_linear("b"), linear("c", 8, 2)},
          {.topology = plan::pipe_data_topology(pipe, data),
           .partition = std::string("uniform"),
           .loss = squares(),
           .base_seed = seed}};
}

EngineOptions options_of(int zero = 0, at::ScalarType precision = at::kFloat) {
  return {.train_batch_size = 12, .microbatch_size = 3, .precision = precision, .zero = zero};
}

bool same_bits(const StateDict& a, const StateDict& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype() == y.second.dtype() &&
           at::equal(x.second, y.second);
  });
}

std::vector<std::string> names_of(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state)
    names.push_back(name);
  return names;
}

void train(PipelineEngine& engine, int steps) {
  static const test::SyntheticData data;
  engine.set_data(batches_of(data, 4, engine.next_step()));
  for (int step = 0; step < steps; ++step)
    REQUIRE(engine.train_batch());
}

TEST_CASE("An engine returns parameters and buffers by layer and name, the same under every plan",
          "[exec]") {
  PipelineEngine one(small_model(1), options_of());
  train(one, 2);
  const StateDict state = one.module_state_dict();
  CHECK(names_of(state) == std::vector<std::string>{"a.bias", "a.weight", "b.bias", "b.weight",
                                                    "c.bias", "c.weight", "norm.bias",
                                                    "norm.num_batches_tracked", "norm.running_mean",
                                                    "norm.running_var", "norm.weight"});
  PipelineEngine two(small_model(2), options_of());
  train(two, 2);
  CHECK(same_bits(two.module_state_dict(), state));
  train(one, 1);  // the returned state is a copy
  CHECK(same_bits(two.module_state_dict(), state));
  CHECK(!same_bits(one.module_state_dict(), state));
}

TEST_CASE("A state without frozen parameters has buffers and all trained parameters", "[exec]") {
  const PipelineEngine engine(small_model(1), options_of());
  const StateDict state = engine.module_state_dict({.frozen = false});
  CHECK(!state.contains("b.weight"));
  CHECK(!state.contains("b.bias"));
  CHECK(state.contains("norm.running_mean"));
  CHECK(state.size() == 9);
}

TEST_CASE("A loaded state is used under any plan, also sharded or in 16 bits", "[exec]") {
  for (const at::ScalarType precision : {at::kFloat, at::kBFloat16}) {
    PipelineEngine source(small_model(1), options_of(0, precision));
    train(source, 2);
    const StateDict state = source.module_state_dict();
    for (const int zero : {0, 1, 3})
      for (const int pipe : {1, 2}) {
        CAPTURE(precision, zero, pipe);
        PipelineEngine target(small_model(pipe, 2, /*seed=*/9), options_of(zero, precision));
        CHECK(!same_bits(target.module_state_dict(), state));
        const auto keys = target.load_module_state_dict(state);
        CHECK(keys.missing.empty());
        CHECK(keys.unexpected.empty());
        CHECK(same_bits(target.module_state_dict(), state));
        // A step starts from the loaded weights, and not from an old master copy or shard.
        StateDict before = state;
        train(target, 1);
        const StateDict after = target.module_state_dict();
        CHECK(at::equal(after.at("b.weight"), before.at("b.weight")));
        CHECK(at::allclose(after.at("a.weight").to(at::kFloat),
                           before.at("a.weight").to(at::kFloat), 0.05, 5e-3));
      }
  }
}

TEST_CASE("Tensor-parallel ranks load parts of whole tensors, and return whole tensors", "[exec]") {
  const auto model_of = [](const plan::Topology& topology, int seed) {
    return PipelineModule(gpt_layers(test::small_shape), {.topology = topology,
                                                          .partition = std::string("uniform"),
                                                          .loss = cross_entropy,
                                                          .base_seed = seed});
  };
  const EngineOptions options{.train_batch_size = 8, .microbatch_size = 2};
  const PipelineEngine one(model_of(plan::pipe_data_topology(1, 1), 3), options);
  const StateDict state = one.module_state_dict();
  PipelineEngine four(model_of(plan::Topology({"pipe", "tensor"}, {2, 2}), 4), options);
  CHECK(!same_bits(four.module_state_dict(), state));
  four.load_module_state_dict(state);
  CHECK(same_bits(four.module_state_dict(), state));
}

TEST_CASE("Strict loading rejects missing and unexpected names, and changes nothing", "[exec]") {
  PipelineEngine engine(small_model(2), options_of());
  const StateDict before = engine.module_state_dict();
  StateDict state = before;
  state.erase("a.bias");
  state["c.weight"] = at::ones({2, 8});
  state["d.weight"] = at::ones({2});
  CHECK(error_of([&] { engine.load_module_state_dict(state); }) ==
        "the state: missing: 'a.bias'; no layer has: 'd.weight'; load with strict = false to leave "
        "these as they are");
  CHECK(same_bits(engine.module_state_dict(), before));

  const IncompatibleKeys keys = engine.load_module_state_dict(state, {.strict = false});
  CHECK(keys.missing == std::vector<std::string>{"a.bias"});
  CHECK(keys.unexpected == std::vector<std::string>{"d.weight"});
  StateDict expected = before;
  expected["c.weight"] = state["c.weight"];
  CHECK(same_bits(engine.module_state_dict(), expected));
}

TEST_CASE("Another shape is rejected, strict or not, before anything is changed", "[exec]") {
  PipelineEngine engine(small_model(1), options_of());
  const StateDict before = engine.module_state_dict();
  StateDict state = before;
  state["a.bias"] = at::ones({8});
  state["c.weight"] = at::ones({8, 2});
  CHECK(error_of([&] { engine.load_module_state_dict(state, {.strict = false}); }) ==
        "the state: 'c.weight' is [8, 2], the model has [2, 8]");
  CHECK(same_bits(engine.module_state_dict(), before));
}

TEST_CASE("A function renames a file's tensors, and skips those that it gives no name", "[exec]") {
  PipelineEngine engine(small_model(2), options_of());
  StateDict theirs;
  for (const auto& [name, tensor] : engine.module_state_dict())
    theirs["module." + name] = tensor + 1;
  theirs["optimizer"] = at::ones({1});
  const auto rename = [](const std::string& name) {
    return name.starts_with("module.") ? name.substr(7) : std::string();
  };
  engine.load_module_state_dict(theirs, {.rename = rename});
  for (const auto& [name, tensor] : engine.module_state_dict())
    CHECK(at::equal(tensor, theirs.at("module." + name)));
  CHECK(error_of([&] {
          engine.load_module_state_dict(theirs, {.rename = [](const auto&) { return "a.bias"; }});
        }) == "the state: 'module.a.bias' and 'module.a.weight' would both become 'a.bias'");
}

TEST_CASE("A custom function returns the contents of each tensor", "[exec]") {
  PipelineEngine engine(small_model(2), options_of());
  const StateDict before = engine.module_state_dict();
  const StateDict file{{"all", at::full({1}, 3.0)}};
  const LoadOptions options{
      .strict = false, .load = [](const std::string& name, const NamedWeights& weights) {
        return name == "c.bias" ? std::optional(weights.read("all").expand({2})) : std::nullopt;
      }};
  const IncompatibleKeys keys = engine.load_module_state_dict(file, options);
  CHECK(keys.missing.size() == before.size() - 1);
  CHECK(keys.unexpected.empty());
  StateDict expected = before;
  expected["c.bias"] = at::full({2}, 3.0F);
  CHECK(same_bits(engine.module_state_dict(), expected));
  LoadOptions strict = options;
  strict.strict = true;
  CHECK(error_of([&] {
          engine.load_module_state_dict(file, strict);
        }).starts_with("the state: missing: 'a.bias', 'a.weight', "));
}

TEST_CASE("A tied weight is loaded from the first layer with its key, or from any other",
          "[exec]") {
  const auto table = [] { return nn::Embedding(7, 6); };
  const PipelineModule model(
      {TiedLayerSpec{"table", "weight", module_layer("words", table)},
       TiedLayerSpec{"table", "weight",
                     module_layer("head", table,
                                  [](nn::Embedding& embedding, const at::Tensor& x) {
                                    return at::matmul(x, embedding->weight.t());
                                  })}},
      {.topology = plan::pipe_data_topology(2, 1), .loss = cross_entropy});
  PipelineEngine engine(model, {.train_batch_size = 2, .microbatch_size = 1});
  engine.load_module_state_dict(StateDict{{"head.weight", at::full({7, 6}, 2.0)}});
  for (const auto& [name, tensor] : engine.module_state_dict())
    CHECK(at::equal(tensor, at::full({7, 6}, 2.0F)));
  engine.load_module_state_dict(
      StateDict{{"head.weight", at::full({7, 6}, 2.0)}, {"words.weight", at::full({7, 6}, 5.0)}});
  for (const auto& [name, tensor] : engine.module_state_dict())
    CHECK(at::equal(tensor, at::full({7, 6}, 5.0F)));
}

TEST_CASE("Hooks see the returned state, the file about to be loaded, and the mismatched names",
          "[exec]") {
  EngineOptions options = options_of();
  std::vector<std::string> heard;
  options.hooks = {{.saved = [](StateDict& state) { state["extra"] = at::ones({1}); },
                    .loading =
                        [&](NamedWeights& file) {
                          heard.push_back("loading " + std::to_string(file.sizes.size()));
                          file.sizes.erase("extra");
                        },
                    .loaded =
                        [&](IncompatibleKeys& keys) {
                          heard.push_back("loaded " + std::to_string(keys.missing.size()));
                          keys.missing.clear();
                        }}};
  PipelineEngine engine(small_model(1), options);
  StateDict state = engine.module_state_dict();
  CHECK(at::equal(state.at("extra"), at::ones({1})));
  state.erase("a.bias");
  engine.load_module_state_dict(state);  // the hooks remove what a strict load would reject
  CHECK(heard == std::vector<std::string>{"loading 11", "loaded 1"});
}

TEST_CASE("Master copies of missing 16-bit tensors stay unchanged", "[exec]") {
  PipelineEngine engine(small_model(1), options_of(0, at::kBFloat16));
  train(engine, 3);
  const auto master_of = [&](const std::string& name) {
    for (const LayerState& layer : engine.executor().snapshot(0).layers)
      for (const NamedTensor& state : layer.optimizer)
        if (layer.name == "a" && state.name == name + "/master")
          return state.value;
    return at::Tensor();
  };
  const at::Tensor weight = master_of("weight");
  REQUIRE(weight.defined());
  REQUIRE(!at::equal(weight, weight.to(at::kBFloat16).to(at::kFloat)));
  engine.load_module_state_dict(StateDict{{"a.bias", at::full({8}, 0.5)}}, {.strict = false});
  CHECK(at::equal(master_of("weight"), weight));
  CHECK(at::equal(master_of("bias"), at::full({8}, 0.5F)));
}

}  // namespace module_state_test
