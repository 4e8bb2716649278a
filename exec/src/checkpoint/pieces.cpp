#include "checkpoint/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

std::int64_t count_of(const StoredTensor& tensor) {
  plan::Bytes count{1};
  for (const std::int64_t size : tensor.shape.sizes)
    count = count * size;
  return count.value;
}

void put_in_order(const StoredLayer& layer, PiecedTensor& tensor) {
  auto& pieces = tensor.pieces;
  const StoredTensor first = *pieces.front().tensor;
  const auto refuse = [&](const std::string& what) {
    throw plan::InputError(
        fmt::format("layer {} ({}): '{}' {}", layer.index, layer.name, tensor.shape.name, what));
  };
  if (first.whole < 0) {
    if (pieces.size() > 1)
      refuse(fmt::format("lies in both {} and {}", pieces[0].file->name, pieces[1].file->name));
    return;
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.tensor->begin, count_of(*a.tensor)) <
           std::pair(b.tensor->begin, count_of(*b.tensor));
  });
  std::int64_t end = 0;
  for (const Piece& piece : pieces) {
    const StoredTensor& slice = *piece.tensor;
    if (slice.whole != first.whole || slice.shape.dtype != first.shape.dtype)
      refuse("lies in slices that do not belong together");
    if (slice.begin != end)
      refuse(fmt::format("lies in slices of which one begins at {}, {} was expected", slice.begin,
                         end));
    if (count_of(slice) > first.whole - end)
      refuse(fmt::format("has {} numbers, its slices hold more", first.whole));
    end += count_of(slice);
  }
  if (end != first.whole)
    refuse(fmt::format("has {} numbers, its slices hold {}", first.whole, end));
  tensor.shape.sizes = {first.whole};
}

}  // namespace

std::vector<PiecedTensor> pieces_of(const StoredLayer& layer, Holds holds) {
  std::vector<PiecedTensor> tensors;
  for (const StoredFile& file : layer.files) {
    if (file.holds != holds)
      continue;
    for (const StoredTensor& stored : file.tensors) {
      auto known = std::find_if(tensors.begin(), tensors.end(), [&](const PiecedTensor& tensor) {
        return tensor.shape.name == stored.shape.name;
      });
      if (known == tensors.end())
        known = tensors.insert(known, {stored.shape, {}});
      known->pieces.push_back({&file, &stored});
    }
  }
  for (PiecedTensor& tensor : tensors)
    put_in_order(layer, tensor);
  return tensors;
}

void require_whole(const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    const StoredLayer& layer = manifest.layers[i];
    const auto expected = static_cast<int>(i);
    if (layer.index > expected)
      throw plan::InputError(fmt::format("layer {} is missing", expected));
    if (layer.index < expected)
      throw plan::InputError(fmt::format("layer {} is there twice", layer.index));
    pieces_of(layer, Holds::Parameters);
    pieces_of(layer, Holds::Optimizer);
  }
}

}  // namespace pipewright::exec
