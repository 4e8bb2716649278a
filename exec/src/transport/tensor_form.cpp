#include "tensor_form.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

TensorForm form_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return {};
  if (tensor.layout() != at::kStrided)
    throw plan::InputError(fmt::format(
        "a tensor of type {} cannot be sent: ranks exchange dense tensors", tensor.toString()));
  return {true, tensor.requires_grad(), tensor.is_cpu(), tensor.scalar_type(),
          tensor.sizes().vec()};
}

}  // namespace

std::int64_t bytes_of(const TensorForm& form) {
  if (!form.defined)
    return 0;
  auto bytes = static_cast<std::int64_t>(at::elementSize(form.type));
  for (const std::int64_t size : form.sizes)
    bytes *= size;
  return bytes;
}

std::int64_t bytes_of(const TensorForms& forms) {
  std::int64_t bytes = 0;
  for (const TensorForm& form : forms)
    bytes += bytes_of(form);
  return bytes;
}

TensorForms forms_of(const Tensors& tensors) {
  TensorForms forms;
  for (const at::Tensor& tensor : tensors)
    forms.push_back(form_of(tensor));
  return forms;
}

void require_on_cpu(const TensorForms& forms) {
  for (const TensorForm& form : forms)
    if (!form.on_cpu)
      throw plan::InputError(fmt::format(
          "{} on a GPU cannot be sent, because Gloo sends only CPU tensors", to_string(form)));
}

Tensors tensors_like(const TensorForms& forms, at::Device device) {
  Tensors tensors;
  for (const TensorForm& form : forms) {
    const auto options = at::TensorOptions(form.type).device(form.on_cpu ? at::kCPU : device);
    tensors.push_back(form.defined ? at::empty(form.sizes, options) : at::Tensor());
  }
  return tensors;
}

void set_requires_grad(const Tensors& tensors, const TensorForms& forms) {
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (forms[t].requires_grad)
      tensors[t].set_requires_grad(true);
}

at::Tensor values_of(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

bool has_bytes(const at::Tensor& tensor) { return tensor.defined() && tensor.numel() > 0; }

std::vector<std::int64_t> to_words(const TensorForms& forms) {
  std::vector<std::int64_t> words{static_cast<std::int64_t>(forms.size())};
  for (const TensorForm& form : forms) {
    words.insert(words.end(), {form.defined, form.requires_grad, form.on_cpu,
                               static_cast<std::int64_t>(form.type),
                               static_cast<std::int64_t>(form.sizes.size())});
    words.insert(words.end(), form.sizes.begin(), form.sizes.end());
  }
  return words;
}

TensorForms forms_from_words(const std::vector<std::int64_t>& words) {
  auto word = words.begin();
  TensorForms forms(static_cast<std::size_t>(*word++));
  for (TensorForm& form : forms) {
    form.defined = *word++ != 0;
    form.requires_grad = *word++ != 0;
    form.on_cpu = *word++ != 0;
    form.type = static_cast<at::ScalarType>(*word++);
    const std::int64_t dimensions = *word++;
    form.sizes.assign(word, word + dimensions);
    word += dimensions;
  }
  return forms;
}

std::string to_string(const TensorForm& form) {
  if (!form.defined)
    return "an undefined tensor";
  return fmt::format("{} [{}]{}", c10::toString(form.type), fmt::join(form.sizes, ", "),
                     form.requires_grad ? " with gradient" : "");
}

std::string difference(const TensorForms& got, const TensorForms& expected) {
  if (got.size() != expected.size())
    return fmt::format("there are {} tensors, not {}", got.size(), expected.size());
  for (std::size_t index = 0; index < got.size(); ++index)
    if (got[index] != expected[index])
      return fmt::format("tensor {} is {}, not {}", index, to_string(got[index]),
                         to_string(expected[index]));
  return "";
}

}  // namespace pipewright::exec
