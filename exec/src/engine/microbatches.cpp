#include "pipewright/exec/engine/microbatches.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>

#include "first_line.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

/// Where a batch is cut: the dimension of each argument, or nothing where it goes whole.
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

Cuts cuts_of(const Tensors& batch, const std::vector<ChunkSpec>& specs) {
  if (!specs.empty() && specs.size() != batch.size())
    throw plan::InputError(fmt::format("the batch has {} arguments, but {} chunk specs are given",
                                       batch.size(), specs.size()));
  Cuts cuts;
  for (std::size_t i = 0; i < batch.size(); ++i)
    cuts.push_back(cut_of(batch[i], specs.empty() ? ChunkSpec{} : specs[i], i));
  return cuts;
}

/// The samples of the batch, on which all arguments that are cut agree.
std::int64_t samples_of(const Tensors& batch, const Cuts& cuts) {
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

/// "2 or 4": the numbers around `wrong` that divide `samples`.
std::string nearest_divisors(std::int64_t samples, std::int64_t wrong) {
  std::int64_t below = std::min(samples, wrong), above = wrong;
  while (samples % below != 0)
    --below;
  while (above < samples && samples % above != 0)
    ++above;
  return above <= samples ? fmt::format("{} or {}", below, above) : fmt::format("{}", below);
}

void check_divides(std::int64_t samples, int chunks) {
  if (chunks < 1)
    throw plan::InputError(fmt::format("{} microbatches asked for, the least is 1", chunks));
  if (samples % chunks == 0)
    return;
  const std::int64_t below = samples / chunks * chunks;
  throw plan::InputError(fmt::format(
      "a batch of {} samples cannot be cut into {} equal microbatches: the nearest numbers of "
      "microbatches that divide it are {}, the nearest batches {}{} samples",
      samples, chunks, nearest_divisors(samples, chunks),
      below > 0 ? fmt::format("{} or ", below) : "", below + chunks));
}

Tensors defined_parts(const Tensors& parts) {
  Tensors defined;
  for (const at::Tensor& part : parts)
    if (part.defined())
      defined.push_back(part);
  return defined;
}

at::Tensor merged(const Merge& merge, const Tensors& parts, std::size_t output) {
  const Tensors defined = defined_parts(parts);
  if (defined.empty())
    return {};
  if (defined.size() < parts.size())
    throw plan::InputError(fmt::format("output {} is there for {} of {} microbatches", output,
                                       defined.size(), parts.size()));
  try {
    return merge(parts);
  } catch (const c10::Error& error) {
    throw plan::InputError(fmt::format("output {} of the microbatches cannot be merged: {}", output,
                                       first_line(error.what())));
  }
}

}  // namespace

std::vector<Tensors> split_batch(const Tensors& batch, int chunks,
                                 const std::vector<ChunkSpec>& specs) {
  const Cuts cuts = cuts_of(batch, specs);
  const std::int64_t samples = samples_of(batch, cuts);
  check_divides(samples, chunks);

  const std::int64_t size = samples / chunks;
  std::vector<Tensors> microbatches(static_cast<std::size_t>(chunks));
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (std::size_t i = 0; i < batch.size(); ++i)
      microbatches[static_cast<std::size_t>(chunk)].push_back(
          cuts[i] ? batch[i].narrow(*cuts[i], chunk * size, size) : batch[i]);
  return microbatches;
}

Merge concatenate(int dimension) {
  return [dimension](const Tensors& parts) { return at::cat(parts, dimension); };
}

Merge sum() {
  return [](const Tensors& parts) {
    at::Tensor total = parts.front();
    for (std::size_t part = 1; part < parts.size(); ++part)
      total = total + parts[part];
    return total;
  };
}

Merge mean() {
  return [](const Tensors& parts) { return sum()(parts) / static_cast<double>(parts.size()); };
}

Tensors merge_outputs(const std::vector<Tensors>& microbatches, const std::vector<Merge>& merges) {
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

  Tensors batch;
  for (std::size_t output = 0; output < outputs; ++output) {
    Tensors parts;
    for (const Tensors& microbatch : microbatches)
      parts.push_back(microbatch[output]);
    batch.push_back(merged(merges.empty() ? concatenate() : merges[output], parts, output));
  }
  return batch;
}

}  // namespace pipewright::exec
