#include "pipewright/exec/loader.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

std::int64_t samples_of(const Batch& all, int size) {
  std::optional<std::int64_t> samples;
  for (const Tensors* tensors : {&all.inputs, &all.targets})
    for (const at::Tensor& tensor : *tensors) {
      const std::int64_t length = tensor.dim() > 0 ? tensor.size(0) : 0;
      if (samples && *samples != length)
        throw plan::InputError(
            fmt::format("the data has tensors of {} and of {} samples", *samples, length));
      samples = length;
    }
  if (size < 1 || samples.value_or(0) < size)
    throw plan::InputError(
        fmt::format("{} samples of data make no microbatch of {}", samples.value_or(0), size));
  return *samples;
}

Tensors slice(const Tensors& tensors, std::int64_t first, std::int64_t size) {
  Tensors slices;
  for (const at::Tensor& tensor : tensors)
    slices.push_back(tensor.narrow(0, first, size));
  return slices;
}

}  // namespace

BatchSource batches_of(const Batch& all, int size) {
  const std::int64_t samples = samples_of(all, size);
  return [all, size, samples, next = std::int64_t{0}]() mutable -> std::optional<Batch> {
    if (next + size > samples)
      return {};
    const std::int64_t first = std::exchange(next, next + size);
    return Batch{slice(all.inputs, first, size), slice(all.targets, first, size)};
  };
}

BatchSource batches_of(const Dataset& data, int microbatches) {
  return [&data, microbatches, next = 0]() mutable -> std::optional<Batch> {
    const int step = next / microbatches, microbatch = next % microbatches;
    ++next;
    return Batch{data.inputs(step, microbatch), data.targets(step, microbatch)};
  };
}

RepeatingLoader::RepeatingLoader(std::function<BatchSource()> open)
    : open_(std::move(open)), source_(open_()) {}

std::optional<Batch> RepeatingLoader::operator()() {
  if (auto batch = source_())
    return batch;
  source_ = open_();
  return source_();
}

bool StepBuffer::fill(int step, int microbatches) {
  step_ = step;
  microbatches_.clear();
  if (!needs_.inputs && !needs_.targets)
    return true;
  while (static_cast<int>(microbatches_.size()) < microbatches) {
    auto batch = source_();
    if (!batch) {
      microbatches_.clear();
      return false;
    }
    microbatches_.push_back({needs_.inputs ? std::move(batch->inputs) : Tensors{},
                             needs_.targets ? std::move(batch->targets) : Tensors{}});
  }
  return true;
}

const Batch& StepBuffer::at(int step, int microbatch) const {
  const auto index = static_cast<std::size_t>(microbatch);
  if (step != step_ || index >= microbatches_.size())
    throw plan::InputError(
        fmt::format("microbatch {} of step {} is asked for, but step {} with {} microbatches was "
                    "read",
                    microbatch, step, step_, microbatches_.size()));
  return microbatches_[index];
}

Tensors StepBuffer::inputs(int step, int microbatch) const { return at(step, microbatch).inputs; }
Tensors StepBuffer::targets(int step, int microbatch) const { return at(step, microbatch).targets; }

}  // namespace pipewright::exec
