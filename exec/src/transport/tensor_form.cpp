#include "tensor_form.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

TensorForm form_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return {};
  if (tensor.layout() != at::kStrided || !tensor.is_cpu())
    throw plan::InputError(
        fmt::format("a tensor of type {} cannot be sent: Gloo moves dense tensors of the CPU",
                    tensor.toString()));
  return {true, tensor.requires_grad(), tensor.scalar_type(), tensor.sizes().vec()};
}

}  // namespace

TensorForms forms_of(const Tensors& tensors) {
  TensorForms forms;
  for (const at::Tensor& tensor : tensors)
    forms.push_back(form_of(tensor));
  return forms;
}

Tensors tensors_like(const TensorForms& forms) {
  Tensors tensors;
  for (const TensorForm& form : forms)
    tensors.push_back(form.defined ? torch::empty(form.sizes, form.type) : at::Tensor());
  return tensors;
}

std::vector<std::int64_t> to_words(const TensorForms& forms) {
  std::vector<std::int64_t> words{static_cast<std::int64_t>(forms.size())};
  for (const TensorForm& form : forms) {
    words.insert(words.end(),
                 {form.defined, form.requires_grad, static_cast<std::int64_t>(form.type),
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
