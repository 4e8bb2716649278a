#pragma once

// What has to be known of tensors before their bytes can be received, as a value that can be
// compared, sent and said.

#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct TensorForm {
  bool defined = false;
  bool requires_grad = false;
  bool on_cpu = true;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

using TensorForms = std::vector<TensorForm>;

std::int64_t bytes_of(const TensorForm& form);
std::int64_t bytes_of(const TensorForms& forms);

/// Throws InputError where a tensor is not a dense one.
TensorForms forms_of(const Tensors& tensors);
/// Throws InputError where a tensor is not on the CPU, for Gloo, which moves no others.
void require_on_cpu(const TensorForms& forms);
/// Fresh tensors, their bytes not yet set; those that are not on the CPU, on `device`.
Tensors tensors_like(const TensorForms& forms, at::Device device = at::kCPU);

/// Once their bytes are set, as what comes in is not an operation on a leaf.
void set_requires_grad(const Tensors& tensors, const TensorForms& forms);

/// The values of a tensor as they are sent: in one piece, and without the graph they came from.
at::Tensor values_of(const at::Tensor& tensor);
bool has_bytes(const at::Tensor& tensor);

std::vector<std::int64_t> to_words(const TensorForms& forms);
TensorForms forms_from_words(const std::vector<std::int64_t>& words);

/// "Float [4, 8]", "an undefined tensor"
std::string to_string(const TensorForm& form);
/// How the first tensor that differs does: "tensor 1 is Float [4, 8], not Float [2, 8]". Empty:
/// none.
std::string difference(const TensorForms& got, const TensorForms& expected);

}  // namespace pipewright::exec
