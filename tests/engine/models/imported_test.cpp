#include "pipewright/engine/models/imported.hpp"

#include <ATen/ATen.h>

#include "pipewright/engine/engine.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/exported_archive.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::exec {

using namespace pipewright::engine;
namespace {

using test::error_of;
using test::ExportedArchive;

struct Built {
  explicit Built(const ExportedArchive& archive = {})
      : model(archive.model_in(folder.path())), specs(imported_layers(model, /*seed=*/3)) {
    for (int l = 0; l < static_cast<int>(specs.size()); ++l)
      layers.push_back(build_layer(specs, l, /*base_seed=*/1));
  }

  /// Returns the inputs of the layer, or the outputs of the last one.
  Tensors before(int layer, int microbatch = 0) {
    Tensors tensors{at::tensor({0, 2, 5}, at::kLong)};
    for (int l = 0; l < layer; ++l)
      tensors = layers.at(static_cast<std::size_t>(l))
                    ->forward_all(tensors, {.step = 4, .microbatch = microbatch});
    return tensors;
  }

  test::TempFolder folder;
  std::shared_ptr<const plan::ImportedModel> model;
  std::vector<LayerSpec> specs;
  std::vector<std::shared_ptr<Layer>> layers;
};

TEST_CASE("Layers have the archive's weights under the module's names", "[exec][imported]") {
  Built built;
  const auto parameters = built.layers.at(1)->named_parameters();
  REQUIRE(parameters.contains("up.weight"));
  CHECK(at::equal(parameters["up.weight"], at::full({4, 4}, 0.5)));
  CHECK(parameters["up.weight"].requires_grad());
  CHECK(built.layers.at(1)->named_buffers().contains("norm.running_mean"));
  CHECK(built.specs.at(0).tied_key == built.specs.at(3).tied_key);
  CHECK(built.specs.at(3).tied_weights == std::vector<std::string>{"weight"});
  CHECK(built.specs.at(1).kind == built.specs.at(1).kind);
  CHECK(built.specs.at(1).kind != built.specs.at(2).kind);  // the second has the dropout
}

TEST_CASE("Operators compute the same as in PyTorch", "[exec][imported]") {
  Built built;
  const Tensors in = built.before(1);
  REQUIRE(in.size() == 2);
  CHECK(at::equal(in[0], at::full({4}, 0.5).sqrt()));
  CHECK_FALSE(in[0].requires_grad());
  CHECK(at::equal(in[1], at::full({3, 4}, 0.25)));  // rows of weight 0
  const auto parameters = built.layers.at(1)->named_parameters();
  at::Tensor mean = at::full({4}, 1.5), variance = at::full({4}, 1.75);
  const at::Tensor product =
      at::linear(in[1], parameters["up.weight"], parameters["up.bias"]) * in[0];
  const at::Tensor wanted =
      in[1] + at::relu(at::batch_norm(product, parameters["norm.weight"], parameters["norm.bias"],
                                      mean, variance, true, 0.1, 1e-5, false));
  const Tensors out = built.before(2);
  REQUIRE(out.size() == 2);
  CHECK(out[0].is_same(in[0]) == false);
  CHECK(at::equal(out[1], wanted));
}

TEST_CASE("A batch norm's running statistics change only in training", "[exec][imported]") {
  Built built;
  const auto sums = [&] {
    return built.layers.at(1)->named_buffers()["norm.running_mean"].clone();
  };
  const at::Tensor first = sums();
  built.before(2);
  const at::Tensor trained = sums();
  CHECK_FALSE(at::equal(first, trained));
  for (const auto& layer : built.layers)
    layer->train(false);
  built.before(2);
  CHECK(at::equal(sums(), trained));
}

TEST_CASE("Dropout depends only on step and microbatch", "[exec][imported]") {
  Built built;
  CHECK(built.specs.at(2).varies);
  CHECK_FALSE(built.specs.at(2).random);
  CHECK_FALSE(built.specs.at(1).varies);
  const Tensors in = built.before(2);
  const auto dropped = [&](int microbatch) {
    return built.layers.at(2)->forward_all(in, {.step = 4, .microbatch = microbatch}).front();
  };
  // In training, batch norm gives the same in each call, independent of its running statistics.
  CHECK(at::equal(dropped(1), dropped(1)));
  CHECK((dropped(1) == 0).any().item<bool>());
  bool differ = false;
  for (int microbatch = 2; microbatch < 6; ++microbatch)
    differ = differ || !at::equal(dropped(1), dropped(microbatch));
  CHECK(differ);
  built.layers.at(2)->train(false);
  CHECK_FALSE((dropped(1) == 0).any().item<bool>());
}

TEST_CASE("The exported loss is used", "[exec][imported]") {
  Built built;
  const at::Tensor scores = at::randn({3, 6}), targets = at::tensor({1, 0, 4}, at::kLong);
  CHECK(at::equal(imported_loss(built.model)({scores}, {targets}),
                  at::cross_entropy_loss(scores, targets)));
}

/// Tokens of a vocabulary of six, with the next one as a target.
class Counting final : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return (at::arange(3, at::kLong) + step + 2 * microbatch) % 6;
  }
  at::Tensor target(int step, int microbatch) const override {
    return (input(step, microbatch) + 1) % 6;
  }
};

TEST_CASE("A PipelineModule of imported layers has the losses of serial training",
          "[exec][imported]") {
  constexpr int microbatches = 4;
  const Built built;
  const Counting data;
  int cases = 0;
  for (const char* const schedule : {"1f1b", "zb-h1"})
    for (const int pipe : {1, 2, 4})
      for (const int checkpoint_interval : {0, 1}) {
        CAPTURE(schedule, pipe, checkpoint_interval);
        PipelineEngine engine(
            PipelineModule(built.specs, {.topology = plan::pipe_data_topology(pipe, 1),
                                         .partition = std::string("uniform"),
                                         .loss = imported_loss(built.model),
                                         .checkpoint_interval = checkpoint_interval}),
            {.train_batch_size = 3 * microbatches, .microbatch_size = 3, .schedule = schedule});
        engine.set_data(batches_of(data, microbatches));
        TrainingSetup setup = engine.setup();
        setup.data = &data;
        SerialTrainer serial(setup, microbatches);
        double first = 0, last = 0;
        for (int step = 0; step < 3; ++step) {
          last = engine.train_batch()->loss;
          CHECK(last == serial.step(step).loss);
          first = step == 0 ? last : first;
        }
        CHECK(first != last);
        ++cases;
      }
  CHECK(cases == 12);
}

TEST_CASE("Sizes other than the exported ones are rejected", "[exec][imported]") {
  Built built;
  CHECK(error_of([&] {
          built.layers.front()->forward_all({at::tensor({0, 2}, at::kLong)}, {});
        }) ==
        "layer model.embed: tokens has the sizes [2], but was exported with [3]; microbatches have "
        "3 samples (training.microbatch_size)");
}

TEST_CASE("Unknown operators are reported with the user's lines", "[exec][imported]") {
  ExportedArchive archive;
  archive.node("mul")["target"] = "torch.ops.mylib.scale.default";
  archive.node("mul_1")["inputs"][1]["name"] = "by";
  CHECK(error_of([&] { Built built(archive); }) ==
        "mylib::scale: no loaded library provides this operator, at make.py:21: return x + "
        "F.relu_(self.norm(self.up(x) * scale))");
  ExportedArchive other;
  other.node("mul_1")["inputs"][1]["name"] = "by";
  CHECK(error_of([&] {
          Built built(other);
        }).starts_with("aten::mul.Tensor: it requires argument \"other\", at make.py:21"));
}

}  // namespace
}  // namespace pipewright::exec
