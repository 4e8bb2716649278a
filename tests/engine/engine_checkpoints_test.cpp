// Checkpoints of an engine: saved under one plan, loaded under another, on threads and over Gloo.

#include "pipewright/engine/engine_checkpoints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn.h>

#include <bit>

#include "exec/support/checkpoints.hpp"
#include "exec/support/processes.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace engine_checkpoints_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
namespace nn = torch::nn;

/// The layout of a training, which does not affect results.
struct Layout {
  int pipe = 1;
  int data = 1;
  std::string schedule = "1f1b";
  int zero = 0;
  int stages_per_rank = 1;
};

LayerSpec linear(const std::string& name, int in, int out) {
  return module_layer(name, [in, out] { return nn::Linear(in, out); });
}

std::vector<LayerSpec> layers_with(int hidden) {
  return {linear("a", 4, hidden),
          random_layer(module_layer("drop", [] { return nn::Dropout(0.2); })),
          module_layer("frozen",
                       [hidden] {
                         nn::Linear layer(hidden, hidden);
                         for (at::Tensor& parameter : layer->parameters())
                           parameter.set_requires_grad(false);
                         return layer;
                       }),
          function_layer("t", [](const at::Tensor& input) { return input.tanh(); }),
          linear("c", hidden, 2)};
}

PipelineModule module_of(const Layout& layout, int seed = 5, int hidden = 8) {
  return {
      layers_with(hidden),
      {.topology = plan::pipe_data_topology(layout.pipe, layout.data),
       .stages_per_rank = layout.stages_per_rank,
       .partition = std::string("uniform"),
       .loss = [](const Tensors& outputs,
                  const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); },
       .base_seed = seed}};
}

EngineOptions options_of(const Layout& layout) {
  return {.train_batch_size = 12,
          .microbatch_size = 3,
          .schedule = layout.schedule,
          .precision = at::kHalf,
          .loss_scaling = {.scale = 1024, .dynamic = true, .growth_interval = 2},
          .zero = layout.zero,
          .gradient_groups = 2};
}

const test::SyntheticData data;

PipelineEngine* begin_data(PipelineEngine& engine) {
  engine.set_data(batches_of(data, 4));
  return &engine;
}

std::string bits_of(const PipelineEngine& engine) {
  std::string bits;
  for (const auto& [name, tensor] : engine.module_state_dict())
    bits += fmt::format(
        "{}:{} ", name,
        std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
  return bits;
}

struct Trained {
  std::vector<double> losses;
  std::string bits;
  double loss_scale = 0;
  bool operator==(const Trained&) const = default;
};

Trained train(PipelineEngine& engine, int steps) {
  Trained trained;
  for (int step = 0; step < steps; ++step)
    trained.losses.push_back(engine.train_batch().value().loss);
  trained.bits = bits_of(engine);
  trained.loss_scale = engine.executor().loss_scale();
  return trained;
}

TEST_CASE("A training resumed under another plan is bit-identical to the uninterrupted one",
          "[exec]") {
  PipelineEngine undisturbed(module_of({}), options_of({}));
  begin_data(undisturbed);
  train(undisturbed, 3);
  const Trained expected = train(undisturbed, 3);
  CHECK(expected.loss_scale > 1024);  // it grows during training, so it has to be saved

  const std::vector<Layout> layouts{
      {},
      {.pipe = 2, .schedule = "zb-h1"},
      {.pipe = 2, .data = 2, .zero = 1},
      {.pipe = 1, .data = 2},
      {.pipe = 2, .schedule = "interleaved-1f1b", .stages_per_rank = 2}};
  int tried = 0;
  for (const Layout& from : layouts) {
    const test::TempFolder folder;
    PipelineEngine first(module_of(from), options_of(from));
    begin_data(first);
    train(first, 3);
    first.save_checkpoint(folder.path());
    for (const Layout& to : layouts) {
      CAPTURE(from.schedule, from.data, from.zero, to.schedule, to.data, to.zero);
      PipelineEngine second(module_of(to), options_of(to));
      begin_data(second);
      const LoadedCheckpoint loaded = second.load_checkpoint(folder.path());
      CHECK(loaded.step == 3);
      CHECK(loaded.differences.empty());
      CHECK(second.next_step() == 3);
      CHECK(train(second, 3) == expected);
      ++tried;
    }
  }
  CHECK(tried == 25);
}

TEST_CASE("State partitioned among pipelines can be resumed, partitioned or not", "[exec]") {
  const auto shared_out = [](int pipe, int zero) {
    const Layout layout{.pipe = pipe, .data = 2, .zero = zero};
    EngineOptions options = options_of(layout);
    options.gradient_groups = 0;  // one per round of the pipelines
    return std::pair(layout, options);
  };
  const auto [layout, options] = shared_out(1, 3);
  PipelineEngine undisturbed(module_of(layout), options);
  begin_data(undisturbed);
  train(undisturbed, 2);
  const Trained expected = train(undisturbed, 2);
  const test::TempFolder folder;
  const auto [from, of_first] = shared_out(2, 3);
  PipelineEngine first(module_of(from), of_first);
  begin_data(first);
  train(first, 2);
  first.save_checkpoint(folder.path());
  for (const int zero : {2, 3}) {
    const auto [to, of_second] = shared_out(1, zero);
    PipelineEngine second(module_of(to), of_second);
    begin_data(second);
    second.load_checkpoint(folder.path());
    CHECK(train(second, 2) == expected);
  }
}

TEST_CASE("The position in the data counts samples read, for any batch size", "[exec]") {
  const test::TempFolder folder;
  const auto counted = [](int& calls) {
    return [source = batches_of(data, 4), &calls]() mutable {
      ++calls;
      return source();
    };
  };
  int calls = 0;
  PipelineEngine first(module_of({}), options_of({}));
  first.set_data(counted(calls));
  train(first, 2);
  first.set_train_batch_size(24);  // eight microbatches
  train(first, 1);
  CHECK(calls == 16);
  first.save_checkpoint(folder.path());
  const Trained expected = train(first, 1);

  int again = 0;
  EngineOptions options = options_of({.data = 2});
  options.train_batch_size = 24;
  PipelineEngine second(module_of({.data = 2}), options);
  second.set_data(counted(again));
  second.load_checkpoint(folder.path());
  CHECK(again == 0);  // nothing is read until it is needed
  CHECK(train(second, 1) == expected);
  CHECK(again == 24);

  options.microbatch_size = 5;
  options.train_batch_size = 10;
  options.gradient_groups = 0;
  PipelineEngine other(module_of({}), options);
  CHECK(error_of([&] {
          other.load_checkpoint(folder.path());
        }).ends_with("48 samples had been read, which is not a multiple of the microbatch size 5"));
  CHECK(other.next_step() == 0);
}

TEST_CASE("Weights can be saved alone and loaded without the training state", "[exec]") {
  const test::TempFolder folder;
  PipelineEngine first(module_of({}), options_of({}));
  begin_data(first);
  train(first, 2);
  first.save_checkpoint(folder.path(), {.optimizer = false});
  for (const std::string& file : test::names_in(folder.path() / "step_00000002"))
    CHECK(!file.starts_with("optimizer"));

  PipelineEngine second(module_of({.pipe = 2}, /*seed=*/6), options_of({.pipe = 2}));
  begin_data(second);
  CHECK(error_of([&] {
          second.load_checkpoint(folder.path());
        }).ends_with("it has only weights: set training = false to load them"));
  const LoadedCheckpoint loaded = second.load_checkpoint(folder.path(), {.training = false});
  CHECK(loaded.step == 2);
  CHECK(second.next_step() == 0);
  CHECK(bits_of(second) == bits_of(first));
  CHECK(second.executor().loss_scale() == 1024);
}

TEST_CASE("A checkpoint without frozen parameters resumes if these already exist", "[exec]") {
  const test::TempFolder folder;
  PipelineEngine first(module_of({}), options_of({}));
  begin_data(first);
  train(first, 2);
  first.save_checkpoint(folder.path(), {.frozen = false});
  const Trained expected = train(first, 2);

  PipelineEngine second(module_of({.pipe = 2}), options_of({.pipe = 2}));
  begin_data(second);
  const std::string refused = error_of([&] { second.load_checkpoint(folder.path()); });
  CHECK(refused.find("layer 2 (frozen): 'weight' is not in the checkpoint") != std::string::npos);
  const auto loaded = second.load_checkpoint(folder.path(), {.weights = {.strict = false}});
  CHECK(loaded.keys.missing == std::vector<std::string>{"frozen.bias", "frozen.weight"});
  CHECK(train(second, 2) == expected);
}

TEST_CASE("A checkpoint loads into a model with other layers as far as names match", "[exec]") {
  const test::TempFolder folder;
  PipelineEngine first(module_of({}), options_of({}));
  first.save_checkpoint(folder.path());
  auto layers = layers_with(8);
  layers.back() = linear("head", 8, 2);
  const PipelineModule other(layers, {.loss = module_of({}).options().loss, .base_seed = 77});
  PipelineEngine second(other, options_of({}));
  CHECK(error_of([&] { second.load_checkpoint(folder.path(), {.weights = {.strict = false}}); })
            .ends_with("its layers or its optimizer differ from those of this training: set "
                       "training = false to load only its weights"));
  auto keys =
      second.load_checkpoint(folder.path(), {.training = false, .weights = {.strict = false}}).keys;
  CHECK(keys.missing == std::vector<std::string>{"head.bias", "head.weight"});
  CHECK(keys.unexpected == std::vector<std::string>{"c.bias", "c.weight"});
  const auto rename = [](const std::string& name) {
    return name.starts_with("c.") ? "head." + name.substr(2) : name;
  };
  second.load_checkpoint(folder.path(), {.training = false, .weights = {.rename = rename}});
  CHECK(at::equal(second.module_state_dict().at("head.weight"),
                  first.module_state_dict().at("c.weight")));
}

TEST_CASE("Notes are returned with the checkpoint, and hooks see them", "[exec]") {
  const test::TempFolder folder;
  EngineOptions options = options_of({});
  std::map<std::string, std::string> heard;
  options.hooks = {{.saving_checkpoint = [](auto& notes) { notes["epoch"] = "3"; },
                    .loaded_checkpoint = [&](const auto& notes) { heard = notes; }}};
  PipelineEngine engine(module_of({}), options);
  engine.save_checkpoint(folder.path(), {.notes = {{"run", "of \"today\""}}});
  const std::map<std::string, std::string> expected{{"epoch", "3"}, {"run", "of \"today\""}};
  CHECK(engine.load_checkpoint(folder.path()).notes == expected);
  CHECK(heard == expected);
}

TEST_CASE("A checkpoint written in the background has the step at which it was saved", "[exec]") {
  const test::TempFolder folder;
  PipelineEngine first(module_of({}), options_of({}));
  begin_data(first);
  train(first, 1);
  const std::string then = bits_of(first);
  first.save_checkpoint(folder.path(), {.background = true});
  train(first, 1);
  first.wait_for_checkpoint();
  first.save_checkpoint(folder.path());
  PipelineEngine second(module_of({}), options_of({}));
  CHECK(second.load_checkpoint(folder.path()).step == 2);
  CHECK(bits_of(second) == bits_of(first));
  CHECK(second.load_checkpoint(folder.path(), {.step = 1}).step == 1);
  CHECK(bits_of(second) == then);
  CHECK(error_of([&] { second.load_checkpoint(folder.path(), {.step = 7}); }) ==
        folder.path().string() + ": no checkpoint of step 7");
}

/// A buffer with a data type that files do not support.
struct ComplexBuffer : Layer {
  ComplexBuffer() { register_buffer("waves", at::zeros({2}, at::kComplexFloat)); }
  at::Tensor forward(const at::Tensor& input, const CallContext&) override { return input; }
};

TEST_CASE("The call fails if a checkpoint cannot be written", "[exec]") {
  const test::TempFolder folder;
  const PipelineModule model(
      {linear("a", 4, 2), {"b", [] { return std::make_shared<ComplexBuffer>(); }}},
      {.loss = module_of({}).options().loss});
  EngineOptions options = options_of({});
  options.precision = at::kFloat;
  PipelineEngine engine(model, options);
  CHECK_THROWS_WITH(engine.save_checkpoint(folder.path()),
                    "the checkpoint of step 0 was not written: tensors of type ComplexFloat cannot "
                    "be stored in a safetensors file");
  engine.save_checkpoint(folder.path(), {.background = true});
  CHECK_THROWS(engine.wait_for_checkpoint());
  engine.wait_for_checkpoint();  // the failure is thrown once
  const auto file = folder.write("file", "");
  CHECK(error_of([&] {
          engine.save_checkpoint(file);
        }).find("cannot create the folder for checkpoints") != std::string::npos);
}

const Layout saving{.pipe = 3, .schedule = "zb-h1"}, resuming{.pipe = 2, .data = 2, .zero = 1};

/// Returns the names that the process of this stage's rank reports.
std::string names_of_stage(const Layout& layout, int stage) {
  const auto stages = module_of(layout).stages();
  std::vector<std::string> names;
  for (const std::string& layer : stages.at(static_cast<std::size_t>(stage)).layers)
    if (layer == "a" || layer == "c" || layer == "frozen")
      names.insert(names.end(), {layer + ".bias", layer + ".weight"});
  return fmt::format("has {}\n", fmt::join(names, " "));
}

/// One rank of a job that saves after two steps, and then of another job that resumes.
TEST_CASE("rank of an engine that saves over Gloo", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    const bool resumes = place->argument.starts_with("resume:");
    const std::string folder = place->argument.substr(place->argument.find(':') + 1);
    const Layout layout = resumes ? resuming : saving;
    EngineOptions options = options_of(layout);
    options.execution.transport = make_gloo_transport(job);
    options.execution.only_rank = job.rank();
    PipelineEngine engine(module_of(layout), options);
    begin_data(engine);
    if (resumes)
      engine.load_checkpoint(folder);
    for (int step = 0; step < 2; ++step)
      test::say(
          fmt::format("{:016x}", std::bit_cast<std::uint64_t>(engine.train_batch().value().loss)));
    if (!resumes)
      engine.save_checkpoint(folder);
    std::string names;
    for (const auto& [name, tensor] : engine.module_state_dict())
      names += " " + name;
    test::say("has" + names);
    if (resumes) {
      engine.load_module_state_dict(engine.module_state_dict());  // a process can load its own
                                                                  // state
      BatchSource other = batches_of(data, 4);
      test::say(engine.load_checkpoint(folder, {.training = false}).keys.missing.empty() ? "whole"
                                                                                         : "less");
      engine.load_checkpoint(std::filesystem::path(folder) / "none");
    }
  } catch (const std::exception& error) {
    test::say(error.what());
  }
}

TEST_CASE("Processes save one checkpoint, and others resume from it under another plan", "[exec]") {
  PipelineEngine undisturbed(module_of({}), options_of({}));
  begin_data(undisturbed);
  std::vector<std::string> losses;
  for (int step = 0; step < 4; ++step)
    losses.push_back(fmt::format(
        "{:016x}\n", std::bit_cast<std::uint64_t>(undisturbed.train_batch().value().loss)));
  const test::TempFolder folder;
  const std::string test_case = "rank of an engine that saves over Gloo";
  {
    test::Ranks ranks(
        {.size = 3, .test_case = test_case, .argument = "save:" + folder.path().string()});
    for (int rank = 0; rank < 3; ++rank)
      CHECK(ranks.said(rank) == losses[0] + losses[1] + names_of_stage(saving, rank));
  }
  test::Ranks ranks(
      {.size = 4, .test_case = test_case, .argument = "resume:" + folder.path().string()});
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(ranks.said(rank) == losses[2] + losses[3] + names_of_stage(resuming, rank / 2) +
                                  "whole\n" + (folder.path() / "none").string() +
                                  ": contains no complete checkpoint\n");
  }
}

}  // namespace engine_checkpoints_test
