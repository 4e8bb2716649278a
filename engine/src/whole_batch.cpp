#include "pipewright/engine/whole_batch.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

/// A part of a batch, with its arguments and how each is split.
struct CutPart {
  const char* name;
  exec::Tensors arguments;
  std::vector<ChunkSpec> chunks;
};

CutPart part_of_keywords(const WholeBatch& batch) {
  for (const auto& [name, chunk] : batch.keyword_chunks)
    if (!batch.keywords.contains(name))
      throw plan::InputError(
          fmt::format("keyword_chunks say how '{}' is cut, but no such keyword is given", name));
  CutPart part{"keywords", {}, {}};
  for (const auto& [name, value] : batch.keywords) {
    const auto chunk = batch.keyword_chunks.find(name);
    part.arguments.push_back(value);
    part.chunks.push_back(chunk == batch.keyword_chunks.end() ? ChunkSpec() : chunk->second);
  }
  return part;
}

/// Returns the number of samples, or nothing if no argument is split.
std::optional<std::int64_t> samples_of(const CutPart& part) {
  for (std::size_t i = 0; i < part.arguments.size(); ++i) {
    const ChunkSpec chunk = part.chunks.empty() ? ChunkSpec() : part.chunks[i];
    if (!chunk.replicated && part.arguments[i].defined())
      return part.arguments[i].size(chunk.dimension);
  }
  return {};
}

/// Returns the arguments of each microbatch, or all arguments for each if none is split.
std::vector<exec::Tensors> cut(const CutPart& part, int count) {
  if (part.arguments.empty() ||
      (std::all_of(part.chunks.begin(), part.chunks.end(),
                   [](const ChunkSpec& chunk) { return chunk.replicated; }) &&
       part.chunks.size() == part.arguments.size()))
    return std::vector<exec::Tensors>(static_cast<std::size_t>(count), part.arguments);
  try {
    return split_batch(part.arguments, count, part.chunks);
  } catch (const plan::InputError& error) {
    throw plan::InputError(fmt::format("{}: {}", part.name, error.what()));
  }
}

/// Returns the samples per microbatch, on which all parts of the batch must agree.
std::vector<std::int64_t> counted(const std::vector<CutPart>& parts, int count) {
  const CutPart* first = nullptr;
  std::int64_t samples = count;
  for (const CutPart& part : parts) {
    const auto own = samples_of(part);
    if (own && first != nullptr && *own != samples)
      throw plan::InputError(fmt::format("the {} of the batch have {} samples, but the {} have {}",
                                         first->name, samples, part.name, *own));
    if (own) {
      first = &part;
      samples = *own;
    }
  }
  std::vector<std::int64_t> counts;
  for (int m = 0; m < count; ++m)
    counts.push_back(samples_in(samples, count, m));
  return counts;
}

}  // namespace

std::vector<exec::Batch> microbatches_of(const WholeBatch& batch, int count) {
  const CutPart inputs{"inputs", batch.inputs, batch.input_chunks};
  const CutPart targets{"targets", batch.targets, batch.target_chunks};
  const CutPart keywords = part_of_keywords(batch);
  const auto own_inputs = cut(inputs, count), own_targets = cut(targets, count),
             own_keywords = cut(keywords, count);
  const auto counts = counted({inputs, targets, keywords}, count);
  std::vector<exec::Batch> microbatches;
  for (std::size_t m = 0; m < counts.size(); ++m) {
    exec::Batch& own = microbatches.emplace_back();
    own.inputs = own_inputs[m];
    own.targets = own_targets[m];
    own.counts = static_cast<double>(counts[m]);
    auto value = own_keywords[m].begin();
    for (const auto& [name, whole] : batch.keywords)
      own.keywords[name] = *value++;
  }
  return microbatches;
}

bool are_even(const std::vector<exec::Batch>& microbatches) {
  return std::all_of(microbatches.begin(), microbatches.end(), [&](const exec::Batch& own) {
    return own.counts == microbatches.front().counts;
  });
}

}  // namespace pipewright::engine
