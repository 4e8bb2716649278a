// A user's model, with all commands of pipewright.

#include <torch/nn.h>

#include <pipewright/cli/command_line.hpp>
#include <pipewright/engine/module_layers.hpp>
#include <pipewright/exec/data/loader.hpp>
#include <pipewright/loop_torch/custom_model.hpp>

using namespace pipewright;

struct WavesShape {
  static constexpr auto kind = "waves";
  int depth = 6, width = 64;
  friend bool operator==(const WavesShape&, const WavesShape&) = default;
};
template <plan::MaybeConst<WavesShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("depth", s.depth, plan::within({.least = 1, .most = 99}), "How many layers.");
  visit("width", s.width, plan::within({.least = 1, .most = 4096}), "Channels of each.");
}
std::vector<exec::LayerSpec> layers(const WavesShape& shape) {
  const auto block = [w = shape.width] {
    return torch::nn::Sequential(torch::nn::Linear(w, w), torch::nn::GELU());
  };
  std::vector<exec::LayerSpec> all;
  for (int i = 0; i < shape.depth; ++i)
    all.push_back(engine::module_layer("block" + std::to_string(i), block));
  return all;
}
std::unique_ptr<exec::Dataset> data(const WavesShape& shape, const std::filesystem::path&,
                                    const exec::BatchShape& batch) {
  const at::Tensor x =
      torch::linspace(0, 9, batch.microbatch_size * shape.width).view({-1, shape.width});
  return exec::dataset_of([x](int step, int microbatch) {
    return exec::Batch{{(x + step + microbatch).sin()}, {(x + step + microbatch + 1).sin()}};
  });
}
at::Tensor loss(const exec::Tensors& outputs, const exec::Tensors& targets) {
  return torch::mse_loss(outputs[0], targets[0]);
}
PIPEWRIGHT_OWN_MODEL(WavesShape, {.layers = layers, .data = data, .loss = loss});

int main(int argc, char** argv) { return cli::command_line(argc, argv); }
