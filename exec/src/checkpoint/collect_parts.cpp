#include "checkpoint/collect_parts.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>

#include "checkpoint/names.hpp"
#include "checkpoint/pieces.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;

Manifest await_part(int part, const std::filesystem::path& folder, const CheckpointOptions& options,
                    Clock::time_point began, const std::function<bool()>& given_up) {
  const auto file = folder / part_name(part);
  const std::chrono::duration<double> timeout(options.timeout.value);
  while (!std::filesystem::exists(file)) {
    if (given_up())
      throw std::runtime_error(fmt::format("stopped waiting before part {} was written", part));
    if (Clock::now() - began > timeout)
      throw std::runtime_error(fmt::format("part {} of {} was not written within {:.3g} s", part,
                                           options.parts, options.timeout.value));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (std::filesystem::is_empty(file))
    throw std::runtime_error(
        fmt::format("part {} was not written, and there was no room to say why", part));
  return read_manifest(file);
}

void require_same(const Manifest& own, const Manifest& other, int part) {
  if (!other.failure.empty())
    throw std::runtime_error(fmt::format("part {}: {}", part, other.failure));
  if (other.job != own.job || other.part != part || !(other.training == own.training))
    throw std::runtime_error(fmt::format(
        "part {} has a different training state from part 0 at step {}", part, own.training.step));
}

void add_layers(std::map<int, StoredLayer>& by_index, const Manifest& part) {
  for (const StoredLayer& layer : part.layers) {
    auto& all =
        by_index.try_emplace(layer.index, StoredLayer{layer.index, layer.name, {}}).first->second;
    if (all.name != layer.name)
      throw plan::InputError(fmt::format("layer {} is called '{}' by one part, '{}' by another",
                                         layer.index, all.name, layer.name));
    all.files.insert(all.files.end(), layer.files.begin(), layer.files.end());
  }
}

}  // namespace

Manifest collect_parts(const std::filesystem::path& folder, const Manifest& own,
                       const CheckpointOptions& options, const std::function<bool()>& given_up) {
  const Clock::time_point began = Clock::now();
  std::map<int, StoredLayer> by_index;
  add_layers(by_index, own);
  for (int part = 1; part < options.parts; ++part) {
    const Manifest other = await_part(part, folder, options, began, given_up);
    require_same(own, other, part);
    add_layers(by_index, other);
  }
  Manifest whole{.job = own.job, .part = 0, .failure = {}, .training = own.training, .layers = {}};
  for (auto& [index, layer] : by_index)
    whole.layers.push_back(std::move(layer));
  require_whole(whole);
  return whole;
}

}  // namespace pipewright::exec
