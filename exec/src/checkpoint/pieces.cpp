#include "checkpoint/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {
namespace {

std::int64_t count_of(const StoredTensor& tensor) {
  plan::Bytes count{1};
  for (const std::int64_t size : tensor.shape.sizes)
    count = count * size;
  return count.value;
}

[[noreturn]] void refuse(const StoredLayer& layer, const std::string& tensor,
                         const std::string& what) {
  throw plan::InputError(
      fmt::format("layer {} ({}): '{}' {}", layer.index, layer.name, tensor, what));
}

void put_in_order(const StoredLayer& layer, PiecedTensor& tensor) {
  auto& pieces = tensor.pieces;
  const StoredTensor first = *pieces.front().tensor;
  const auto refuse = [&](const std::string& what) {
    exec::refuse(layer, tensor.shape.name, what);
  };
  if (first.whole < 0) {
    if (pieces.size() > 1)
      refuse(
          fmt::format("is stored in both {} and {}", pieces[0].file->name, pieces[1].file->name));
    return;
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.tensor->begin, count_of(*a.tensor)) <
           std::pair(b.tensor->begin, count_of(*b.tensor));
  });
  std::int64_t end = 0;
  for (const Piece& piece : pieces) {
    const StoredTensor& slice = *piece.tensor;
    if (slice.whole != first.whole || slice.shape.dtype != first.shape.dtype ||
        !(slice.part == first.part))
      refuse("is stored in slices that do not match");
    if (slice.begin != end)
      refuse(fmt::format("is stored in slices of which one begins at {} instead of {}", slice.begin,
                         end));
    if (count_of(slice) > first.whole - end)
      refuse(fmt::format("has {} elements, but its slices have more", first.whole));
    end += count_of(slice);
  }
  if (end != first.whole)
    refuse(fmt::format("has {} elements, but its slices have {}", first.whole, end));
  tensor.shape.sizes = {first.whole};
}

/// Sorts parts of the same tensor next to each other, by index. Tensors keep the order of their
/// first parts.
void put_parts_together(std::vector<PiecedTensor>& tensors) {
  std::map<std::string, std::size_t> places;
  for (const PiecedTensor& tensor : tensors)
    places.try_emplace(tensor.shape.name, places.size());
  const auto place_of = [&](const PiecedTensor& tensor) {
    return std::pair(places.at(tensor.shape.name), tensor.part.index);
  };
  std::stable_sort(
      tensors.begin(), tensors.end(),
      [&](const PiecedTensor& a, const PiecedTensor& b) { return place_of(a) < place_of(b); });
}

bool are_of_one(const TensorPart& a, const TensorPart& b) {
  return a.dimension == b.dimension && a.blocks == b.blocks && a.length == b.length &&
         a.count == b.count && a.experts == b.experts;
}

/// Checks the parts of one tensor, in their order: their lengths must add up to the tensor's
/// length, once for each group of experts. Not for parts that are stored in slices.
void require_length(const StoredLayer& layer, const PiecedTensor* parts) {
  const auto& [name, dtype, sizes] = parts->shape;
  const TensorPart& first = parts->part;
  const auto dimension = static_cast<std::size_t>(first.dimension);
  if (dimension >= sizes.size())
    refuse(layer, name, fmt::format("is cut along dimension {} of {}", dimension, sizes.size()));
  plan::Bytes length{};
  for (int part = 0; part < first.count; ++part) {
    auto others = parts[part].shape.sizes;
    if (others.size() == sizes.size()) {
      length += plan::Bytes{others[dimension]};
      others[dimension] = sizes[dimension];
    }
    if (others != sizes || parts[part].shape.dtype != dtype)
      refuse(layer, name, "is stored in parts that do not match");
  }
  if (length != plan::Bytes{first.length} * first.experts)
    refuse(layer, name,
           fmt::format("has length {}, but its parts have {}", first.length,
                       length.value / first.experts));
}

/// Checks that the parts of each tensor come from one cut and that none is missing.
void require_all_parts(const StoredLayer& layer, const std::vector<PiecedTensor>& tensors) {
  for (std::size_t begin = 0; begin < tensors.size();) {
    const std::string& name = tensors[begin].shape.name;
    const TensorPart& cut = tensors[begin].part;
    std::size_t end = begin;
    for (; end < tensors.size() && tensors[end].shape.name == name; ++end)
      if (!are_of_one(tensors[end].part, cut))
        refuse(layer, name, "is stored in parts that do not match");
    // No part occurs twice, and each index is below the count.
    if (end - begin != static_cast<std::size_t>(cut.count))
      refuse(layer, name,
             fmt::format("has {} parts, of which {} were found", cut.count, end - begin));
    if (cut.count > 1 && tensors[begin].pieces.front().tensor->whole < 0)
      require_length(layer, &tensors[begin]);
    begin = end;
  }
}

}  // namespace

std::vector<PiecedTensor> pieces_of(const StoredLayer& layer, Holds holds) {
  std::vector<PiecedTensor> tensors;
  for (const StoredFile& file : layer.files) {
    if (file.holds != holds)
      continue;
    for (const StoredTensor& stored : file.tensors) {
      auto known = std::find_if(tensors.begin(), tensors.end(), [&](const PiecedTensor& tensor) {
        return tensor.shape.name == stored.shape.name && tensor.part.index == stored.part.index;
      });
      if (known == tensors.end())
        known = tensors.insert(known, {stored.shape, stored.part, {}});
      known->pieces.push_back({&file, &stored});
    }
  }
  for (PiecedTensor& tensor : tensors)
    put_in_order(layer, tensor);
  put_parts_together(tensors);
  require_all_parts(layer, tensors);
  return tensors;
}

std::vector<TensorShape> whole_shapes(const std::vector<PiecedTensor>& tensors) {
  std::vector<TensorShape> shapes;
  for (const PiecedTensor& tensor : tensors) {
    if (tensor.part.index > 0)
      continue;
    shapes.push_back(tensor.shape);
    if (tensor.part.count > 1) {
      shapes.back().sizes[static_cast<std::size_t>(tensor.part.dimension)] = tensor.part.length;
      auto& rows = shapes.back().sizes[0];
      rows = (plan::Bytes{rows} * tensor.part.experts).value;
    }
  }
  return shapes;
}

void require_whole(const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    const StoredLayer& layer = manifest.layers[i];
    const auto expected = static_cast<int>(i);
    if (layer.index > expected)
      throw plan::InputError(fmt::format("layer {} is missing", expected));
    if (layer.index < expected)
      throw plan::InputError(fmt::format("layer {} occurs twice", layer.index));
    pieces_of(layer, Holds::Parameters);
    pieces_of(layer, Holds::Optimizer);
  }
}

}  // namespace pipewright::exec
