#pragma once

// The properties of a tensor that a receiver needs before it can receive the bytes, as a value that
// can be compared, sent and printed.

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

/// Throws InputError if a tensor is not dense.
TensorForms forms_of(const Tensors& tensors);
/// Throws InputError if a tensor is not on the CPU, because Gloo moves CPU tensors only.
void require_on_cpu(const TensorForms& forms);
/// Returns uninitialized tensors: on the CPU, or on `device` if the form is not of the CPU.
Tensors tensors_like(const TensorForms& forms, at::Device device = at::kCPU);

/// Sets requires_grad. Call it after the bytes were received, because the receive must not be an
/// operation on a leaf.
void set_requires_grad(const Tensors& tensors, const TensorForms& forms);

/// Returns a tensor's values for sending: contiguous, and without the autograd graph.
at::Tensor values_of(const at::Tensor& tensor);
bool has_bytes(const at::Tensor& tensor);

std::vector<std::int64_t> to_words(const TensorForms& forms);
TensorForms forms_from_words(const std::vector<std::int64_t>& words);

/// "Float [4, 8]", "an undefined tensor"
std::string to_string(const TensorForm& form);
/// Describes the first difference: "tensor 1 is Float [4, 8], not Float [2, 8]". Returns an empty
/// string if there is none.
std::string difference(const TensorForms& got, const TensorForms& expected);

}  // namespace pipewright::exec
