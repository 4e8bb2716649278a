#include "pipewright/exec/data/tensor_samples.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/sample_order.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

class TensorSamples final : public Dataset {
 public:
  TensorSamples(Tensors inputs, Tensors targets, const BatchShape& shape)
      : inputs_(std::move(inputs)), targets_(std::move(targets)), shape_(shape) {}

  Tensors inputs(int step, int microbatch) const override {
    return picked(inputs_, step, microbatch);
  }
  Tensors targets(int step, int microbatch) const override {
    return picked(targets_, step, microbatch);
  }

 private:
  Tensors picked(const Tensors& from, int step, int microbatch) const {
    std::vector<std::int64_t> numbers;
    for (int sample = 0; sample < shape_.microbatch_size; ++sample)
      numbers.push_back(sample_at(step, microbatch, sample, shape_, from.front().size(0)));
    const at::Tensor places = at::tensor(numbers, at::kLong);
    Tensors tensors;
    for (const at::Tensor& all : from)
      tensors.push_back(all.index_select(0, places));
    return tensors;
  }

  Tensors inputs_, targets_;  // [samples, …] each
  BatchShape shape_;
};

/// Returns the tensors called "inputs", or "inputs.0" and so on, and checks their types and sizes.
Tensors tensors_called(const std::string& name, const std::vector<TensorShape>& shapes,
                       const std::vector<StoredValue>& stored, const std::string& file) {
  Tensors tensors;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const std::string numbered = fmt::format("{}.{}", name, s);
    const auto found = std::ranges::find_if(stored, [&](const StoredValue& value) {
      return value.name == numbered || (shapes.size() == 1 && value.name == name);
    });
    if (found == stored.end())
      throw plan::InputError(fmt::format("{}: there is no tensor \"{}\" in it", file,
                                         shapes.size() == 1 ? name : numbered));
    std::vector<std::int64_t> wanted = shapes[s].sizes;
    wanted.insert(wanted.begin(), found->value.dim() == 0 ? 0 : found->value.size(0));
    if (found->value.sizes() != at::IntArrayRef(wanted) || wanted.front() == 0 ||
        found->value.scalar_type() != shapes[s].dtype)
      throw plan::InputError(fmt::format(
          "{}: \"{}\" is {} [{}], but must have consecutive samples of shape [{}] and type {}",
          file, found->name, word_of(found->value.scalar_type()),
          fmt::join(found->value.sizes(), ", "), fmt::join(shapes[s].sizes, ", "),
          word_of(shapes[s].dtype)));
    tensors.push_back(found->value);
  }
  return tensors;
}

}  // namespace

std::unique_ptr<Dataset> open_tensor_samples(const std::filesystem::path& file,
                                             const std::vector<TensorShape>& inputs,
                                             const std::vector<TensorShape>& targets,
                                             const BatchShape& shape) {
  const at::Tensor bytes = mapped(file);
  const std::vector<StoredValue> stored = parse_safetensors(text_of(bytes), file.string());
  Tensors ins = tensors_called("inputs", inputs, stored, file.string());
  Tensors outs = tensors_called("targets", targets, stored, file.string());
  for (const Tensors* const all : {&ins, &outs})
    for (const at::Tensor& tensor : *all)
      if (tensor.size(0) != ins.front().size(0))
        throw plan::InputError(
            fmt::format("{}: the first input has {} samples, but another tensor has {}",
                        file.string(), ins.front().size(0), tensor.size(0)));
  return std::make_unique<TensorSamples>(std::move(ins), std::move(outs), shape);
}

}  // namespace pipewright::exec
