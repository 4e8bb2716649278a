#include "pipewright/engine/microbatches.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>

#include "pipewright/exec/first_line.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

/// The dimension along which each argument is split, or nothing if it is replicated.
using Cuts = std::vector<std::optional<std::int64_t>>;

std::optional<std::int64_t> cut_of(const at::Tensor& argument, const ChunkSpec& spec,
                                   std::size_t index) {
  if (spec.replicated || !argument.defined())
    return {};
  const std::int64_t dimensions = argument.dim();
  if (dimensions == 0)
    throw plan::InputError(fmt::format(
        "argument {} of the batch is a single number, which cannot be cut: replicate it", index));
  if (spec.dimension < -dimensions || spec.dimension >= dimensions)
    throw plan::InputError(fmt::format("argument {} of the batch, {}, has no dimension {} to cut",
                                       index, c10::str(argument.sizes()), spec.dimension));
  return spec.dimension < 0 ? spec.dimension + dimensions : spec.dimension;
}

Cuts cuts_of(const exec::Tensors& batch, const std::vector<ChunkSpec>& specs) {
  if (!specs.empty() && specs.size() != batch.size())
    throw plan::InputError(fmt::format("the batch has {} arguments, but {} chunk specs are given",
                                       batch.size(), specs.size()));
  Cuts cuts;
  for (std::size_t i = 0; i < batch.size(); ++i)
    cuts.push_back(cut_of(batch[i], specs.empty() ? ChunkSpec{} : specs[i], i));
  return cuts;
}

/// Returns the number of samples, on which all split arguments must agree.
std::int64_t samples_of(const exec::Tensors& batch, const Cuts& cuts) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!cuts[i])
      continue;
    if (!first)
      first = i;
    else if (batch[i].size(*cuts[i]) != batch[*first].size(*cuts[*first]))
      throw plan::InputError(fmt::format(
          "argument {} of the batch has {} samples along dimension {}, but argument {} has {} "
          "along dimension {}: cut both where they are equally long, or replicate one",
          i, batch[i].size(*cuts[i]), *cuts[i], *first, batch[*first].size(*cuts[*first]),
          *cuts[*first]));
  }
  if (!first)
    throw plan::InputError("every argument of the batch is replicated: there is nothing to cut");
  return batch[*first].size(*cuts[*first]);
}

void check_fills(std::int64_t samples, int chunks) {
  if (chunks < 1)
    throw plan::InputError(
        fmt::format("{} microbatches requested, but at least 1 is needed", chunks));
  if (samples > 0 && samples < chunks)
    throw plan::InputError(fmt::format(
        "a batch of {} samples does not fill {} microbatches: give at least {} samples, "
        "or have at most {} microbatches",
        samples, chunks, chunks, samples));
}

exec::Tensors defined_parts(const exec::Tensors& parts) {
  exec::Tensors defined;
  for (const at::Tensor& part : parts)
    if (part.defined())
      defined.push_back(part);
  return defined;
}

at::Tensor merged(const Merge& merge, const exec::Tensors& parts, std::size_t output) {
  const exec::Tensors defined = defined_parts(parts);
  if (defined.empty())
    return {};
  if (defined.size() < parts.size())
    throw plan::InputError(fmt::format("output {} exists in only {} of {} microbatches", output,
                                       defined.size(), parts.size()));
  try {
    return merge(parts);
  } catch (const c10::Error& error) {
    throw plan::InputError(fmt::format("output {} of the microbatches cannot be merged: {}", output,
                                       exec::first_line(error.what())));
  }
}

}  // namespace

std::vector<exec::Tensors> split_batch(const exec::Tensors& batch, int chunks,
                                       const std::vector<ChunkSpec>& specs) {
  const Cuts cuts = cuts_of(batch, specs);
  const std::int64_t samples = samples_of(batch, cuts);
  check_fills(samples, chunks);

  std::vector<exec::Tensors> microbatches(static_cast<std::size_t>(chunks));
  std::int64_t begin = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t size = samples_in(samples, chunks, chunk);
    for (std::size_t i = 0; i < batch.size(); ++i)
      microbatches[static_cast<std::size_t>(chunk)].push_back(
          cuts[i] ? batch[i].narrow(*cuts[i], begin, size) : batch[i]);
    begin += size;
  }
  return microbatches;
}

Merge concatenate(int dimension) {
  return [dimension](const exec::Tensors& parts) { return at::cat(parts, dimension); };
}

Merge sum() {
  return [](const exec::Tensors& parts) {
    at::Tensor total = parts.front();
    for (std::size_t part = 1; part < parts.size(); ++part)
      total = total + parts[part];
    return total;
  };
}

Merge mean() {
  return
      [](const exec::Tensors& parts) { return sum()(parts) / static_cast<double>(parts.size()); };
}

exec::Tensors merge_outputs(const std::vector<exec::Tensors>& microbatches,
                            const std::vector<Merge>& merges) {
  if (microbatches.empty())
    throw plan::InputError("there are no microbatches to merge");
  const std::size_t outputs = microbatches.front().size();
  for (std::size_t m = 0; m < microbatches.size(); ++m)
    if (microbatches[m].size() != outputs)
      throw plan::InputError(fmt::format("microbatch {} has {} outputs, but microbatch 0 has {}", m,
                                         microbatches[m].size(), outputs));
  if (!merges.empty() && merges.size() != outputs)
    throw plan::InputError(fmt::format("the microbatches have {} outputs, but {} merges are given",
                                       outputs, merges.size()));

  exec::Tensors batch;
  for (std::size_t output = 0; output < outputs; ++output) {
    exec::Tensors parts;
    for (const exec::Tensors& microbatch : microbatches)
      parts.push_back(microbatch[output]);
    batch.push_back(merged(merges.empty() ? concatenate() : merges[output], parts, output));
  }
  return batch;
}

}  // namespace pipewright::engine
