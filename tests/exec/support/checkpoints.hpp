// Snapshots in which every number follows from the step, so that a checkpoint can be checked
// without having seen it being written.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::test {

inline at::Tensor numbers_of(std::int64_t step, int layer, at::IntArrayRef sizes) {
  const at::Tensor numbers = at::empty(sizes, at::kFloat);
  for (std::int64_t i = 0; i < numbers.numel(); ++i)
    numbers.data_ptr<float>()[i] = static_cast<float>(step * 100 + layer * 10 + i);
  return numbers;
}

inline exec::TrainingState training_of(std::int64_t step) {
  return {.step = step,
          .seed = 7,
          .microbatches = 8,
          .microbatch_size = 2,
          .gradient_groups = 4,
          .loss_scale = 65536.0 / 3,
          .steps_since_overflow = static_cast<int>(step % 5),
          .optimizer = "adamw",
          .precision = "float32",
          .device = "avx2"};
}

/// Returns a weight, a bias in bfloat16 and the optimizer state of the weight.
inline exec::LayerState layer_of(std::int64_t step, int index) {
  const at::Tensor weight = numbers_of(step, index, {2, 3});
  const at::Tensor bias = numbers_of(step, index, {3}).to(at::kBFloat16);
  return {.index = index,
          .name = "layer " + std::to_string(index),
          .parameters = {{"bias", bias}, {"weight", weight}},
          .optimizer = {{"weight/step", at::scalar_tensor(step, at::kLong)},
                        {"weight/exp_avg", weight / 4}}};
}

inline exec::Snapshot snapshot_of(std::int64_t step, const std::vector<int>& layers) {
  exec::Snapshot snapshot{training_of(step), {}};
  for (const int layer : layers)
    snapshot.layers.push_back(layer_of(step, layer));
  return snapshot;
}

inline bool same(const std::vector<exec::NamedTensor>& a, const std::vector<exec::NamedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const exec::NamedTensor& x, const exec::NamedTensor& y) {
                      return x.name == y.name && x.whole == y.whole && x.begin == y.begin &&
                             x.value.scalar_type() == y.value.scalar_type() &&
                             at::equal(x.value, y.value);
                    });
}

/// Returns true if a checkpoint equals, in all its layers, the snapshot of its own step.
inline bool holds_its_step(const exec::Checkpoint& checkpoint, int layers) {
  const std::int64_t step = checkpoint.training().step;
  if (!(checkpoint.training() == training_of(step)) ||
      static_cast<int>(checkpoint.layers().size()) != layers)
    return false;
  for (int i = 0; i < layers; ++i) {
    const exec::LayerState found = checkpoint.layer(i);
    const exec::LayerState expected = layer_of(step, i);
    if (found.index != i || found.name != expected.name ||
        !same(found.parameters, expected.parameters) || !same(found.optimizer, expected.optimizer))
      return false;
  }
  return true;
}

/// Saves and waits. Returns the failure, or an empty text.
inline std::string save(exec::CheckpointWriter& writer, exec::Snapshot snapshot) {
  writer.save(std::move(snapshot));
  writer.wait();
  return writer.failure().value_or("");
}

/// Returns the names in a folder in alphabetical order.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pipewright::test
