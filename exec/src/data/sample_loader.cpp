#include "pipewright/exec/data/sample_loader.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipewright/exec/hash.hpp"
#include "pipewright/plan/error.hpp"
#include "sample_order.hpp"

namespace pipewright::exec {
namespace {

Tensors stacked(const std::vector<Tensors>& samples) {
  Tensors batch;
  for (std::size_t t = 0; t < samples.front().size(); ++t) {
    Tensors each;
    for (const Tensors& sample : samples)
      each.push_back(sample.at(t));
    batch.push_back(at::stack(each));
  }
  return batch;
}

class SampleData final : public Dataset {
 public:
  SampleData(Samples samples, LoaderOptions options)
      : samples_(std::move(samples)),
        options_(std::move(options)),
        steps_(steps_per_epoch(samples_.count, options_)) {}

  Tensors inputs(int step, int microbatch) const override {
    return of_all(step, microbatch, &Batch::inputs);
  }
  Tensors targets(int step, int microbatch) const override {
    return of_all(step, microbatch, &Batch::targets);
  }

 private:
  Tensors of_all(int step, int microbatch, Tensors Batch::*part) const {
    std::vector<Tensors> samples;
    for (int s = 0; s < options_.microbatch_size; ++s)
      samples.push_back(samples_.at(number_at(step, microbatch, s)).*part);
    return stacked(samples);
  }

  std::int64_t number_at(int step, int microbatch, int sample) const {
    const int epoch = step / steps_;
    const std::int64_t place = (std::int64_t{step % steps_} * options_.train_batch_size +
                                std::int64_t{microbatch} * options_.microbatch_size + sample) %
                               samples_.count;
    if (!options_.sampler)
      return options_.shuffle ? shuffled(place, samples_.count, hash_of({options_.seed, epoch}))
                              : place;
    const std::int64_t number = options_.sampler(epoch, place);
    if (number < 0 || number >= samples_.count)
      throw plan::InputError(fmt::format(
          "the sampler returned sample {} at place {} of epoch {}, but there are {} samples",
          number, place, epoch, samples_.count));
    return number;
  }

  Samples samples_;
  LoaderOptions options_;
  int steps_;
};

}  // namespace

Samples samples_of(const Batch& all) {
  std::int64_t count = -1;
  for (const Tensors* tensors : {&all.inputs, &all.targets})
    for (const at::Tensor& tensor : *tensors) {
      const std::int64_t length = tensor.dim() > 0 ? tensor.size(0) : 0;
      if (count >= 0 && count != length)
        throw plan::InputError(
            fmt::format("the data has tensors of {} and of {} samples", count, length));
      count = length;
    }
  const auto one = [](const Tensors& tensors, std::int64_t number) {
    Tensors parts;
    for (const at::Tensor& tensor : tensors)
      parts.push_back(tensor.select(0, number));
    return parts;
  };
  return {std::max<std::int64_t>(count, 0), [all, one](std::int64_t number) {
            return Batch{one(all.inputs, number), one(all.targets, number)};
          }};
}

int steps_per_epoch(std::int64_t samples, const LoaderOptions& options) {
  const int batch = options.train_batch_size, microbatch = options.microbatch_size;
  if (microbatch < 1 || batch < microbatch || batch % microbatch != 0)
    throw plan::InputError(fmt::format(
        "a batch of {} samples does not divide into microbatches of {}", batch, microbatch));
  const std::int64_t whole = samples / batch, rest = samples % batch;
  const std::int64_t steps = whole + (options.last == LastBatch::Pad && rest > 0 ? 1 : 0);
  if (steps == 0)
    throw plan::InputError(fmt::format(
        "{} samples are too few for a batch of {}: {}", samples, batch,
        samples > 0 ? "pad the last batch, or use a smaller batch size" : "there are none"));
  return static_cast<int>(steps);
}

std::unique_ptr<Dataset> load_samples(Samples samples, LoaderOptions options) {
  return std::make_unique<SampleData>(std::move(samples), std::move(options));
}

}  // namespace pipewright::exec
