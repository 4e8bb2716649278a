#include "pipewright/exec/data/loader.hpp"

#include <fmt/format.h>

#include "pipewright/exec/data/sample_loader.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

std::int64_t samples_for(const Batch& all, int size) {
  const std::int64_t samples = samples_of(all).count;
  if (size < 1 || samples < size)
    throw plan::InputError(
        fmt::format("{} samples are too few for a microbatch of {}", samples, size));
  return samples;
}

Tensors slice(const Tensors& tensors, std::int64_t first, std::int64_t size) {
  Tensors slices;
  for (const at::Tensor& tensor : tensors)
    slices.push_back(tensor.narrow(0, first, size));
  return slices;
}

}  // namespace

BatchSource batches_of(const Batch& all, int size) {
  const std::int64_t samples = samples_for(all, size);
  return [all, size, samples, next = std::int64_t{0}]() mutable -> std::optional<Batch> {
    if (next + size > samples)
      return {};
    const std::int64_t first = std::exchange(next, next + size);
    return Batch{slice(all.inputs, first, size), slice(all.targets, first, size)};
  };
}

BatchSource batches_of(std::vector<Batch> microbatches) {
  return [all = std::move(microbatches), next = std::size_t{0}]() mutable -> std::optional<Batch> {
    return next < all.size() ? std::optional(all[next++]) : std::nullopt;
  };
}

BatchSource batches_of(const Dataset& data, int microbatches, int first_step) {
  return
      [&data, microbatches, step = first_step, microbatch = 0]() mutable -> std::optional<Batch> {
        Batch batch{data.inputs(step, microbatch), data.targets(step, microbatch),
                    data.weight(step, microbatch), data.keywords(step, microbatch)};
        if (++microbatch == microbatches) {
          microbatch = 0;
          ++step;
        }
        return batch;
      };
}

namespace {

class FunctionData final : public Dataset {
 public:
  FunctionData(std::function<Batch(int, int)> batch_at, std::function<double(int, int)> weight_at)
      : batch_at_(std::move(batch_at)), weight_at_(std::move(weight_at)) {}
  Tensors inputs(int step, int microbatch) const override {
    return batch_at_(step, microbatch).inputs;
  }
  Tensors targets(int step, int microbatch) const override {
    return batch_at_(step, microbatch).targets;
  }
  double weight(int step, int microbatch) const override {
    return weight_at_ ? weight_at_(step, microbatch) : 1;
  }
  NamedTensors keywords(int step, int microbatch) const override {
    return batch_at_(step, microbatch).keywords;
  }

 private:
  std::function<Batch(int, int)> batch_at_;
  std::function<double(int, int)> weight_at_;
};

}  // namespace

std::unique_ptr<Dataset> dataset_of(std::function<Batch(int, int)> batch_at,
                                    std::function<double(int, int)> weight_at) {
  return std::make_unique<FunctionData>(std::move(batch_at), std::move(weight_at));
}

RepeatingLoader::RepeatingLoader(std::function<BatchSource()> open)
    : open_(std::move(open)), source_(open_()) {}

std::optional<Batch> RepeatingLoader::operator()() {
  if (auto batch = source_())
    return batch;
  source_ = open_();
  return source_();
}

bool StepBuffer::fill(BatchSource& source, int step, int microbatches) {
  step_ = step;
  count_ = microbatches;
  microbatches_.clear();
  follows_ = followed_ != nullptr && !source;
  if (follows_)
    return true;
  double counted = 0;
  if (!needs_.inputs && !needs_.targets && !needs_.keywords)
    return true;
  for (int m = 0; m < microbatches; ++m) {
    auto batch = source();
    if (!batch)
      return false;
    counted += batch->counts;
    if (m / (microbatches / needs_.parts) == needs_.part || needs_.parts == 1)
      microbatches_[m] = {needs_.inputs ? std::move(batch->inputs) : Tensors{},
                          needs_.targets ? std::move(batch->targets) : Tensors{}, batch->counts,
                          needs_.keywords ? std::move(batch->keywords) : NamedTensors{}};
  }
  if (!(counted > 0))
    throw plan::InputError(
        fmt::format("the counts of step {}'s microbatches sum to {}. At least one microbatch must "
                    "have a positive count",
                    step, counted));
  mean_count_ = counted / microbatches;
  return true;
}

const Batch& StepBuffer::at(int step, int microbatch) const {
  const auto found = microbatches_.find(microbatch);
  if (step != step_ || found == microbatches_.end())
    throw plan::InputError(fmt::format(
        "microbatch {} of step {} was requested, but the buffer has {} microbatches of step {}",
        microbatch, step, microbatches_.size(), step_));
  return found->second;
}

void StepBuffer::follow(std::shared_ptr<const Dataset> data) { followed_ = std::move(data); }

Tensors StepBuffer::inputs(int step, int microbatch) const {
  return follows_ ? followed_->inputs(step, microbatch) : at(step, microbatch).inputs;
}

Tensors StepBuffer::targets(int step, int microbatch) const {
  return follows_ ? followed_->targets(step, microbatch) : at(step, microbatch).targets;
}

double StepBuffer::weight(int step, int microbatch) const {
  if (loss_ == LossOf::Sum)
    return count_;
  return follows_ ? followed_->weight(step, microbatch) : at(step, microbatch).counts / mean_count_;
}

NamedTensors StepBuffer::keywords(int step, int microbatch) const {
  return follows_ ? followed_->keywords(step, microbatch) : at(step, microbatch).keywords;
}

}  // namespace pipewright::exec
