#include "tensor_mail.hpp"

#include <ATen/ATen.h>

namespace pipewright::exec {
namespace {

/// Returns the memory of a contiguous tensor of any type as bytes.
at::Tensor bytes_of(const at::Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, [kept = tensor](void*) {},
      at::kByte);
}

}  // namespace

void post_tensors(GlooMesh& mesh, const Tensors& tensors, int to, int tag, Operations& started) {
  for (const at::Tensor& tensor : tensors)
    if (has_bytes(tensor))
      started.push_back(mesh.send(bytes_of(values_of(tensor)), to, tag));
}

void post_receives(GlooMesh& mesh, const Tensors& tensors, int from, int tag, Operations& started) {
  for (const at::Tensor& tensor : tensors)
    if (has_bytes(tensor))
      started.push_back(mesh.receive(bytes_of(tensor), from, tag));
}

}  // namespace pipewright::exec
