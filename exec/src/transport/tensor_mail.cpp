#include "tensor_mail.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace pipewright::exec {
namespace {

// A receive must know its length, so the words of the forms go in a frame of this many, the first
// of which says how many there are; more than fit follow in a message of their own.
constexpr std::int64_t frame_words = 64;
constexpr std::int64_t words_in_frame = frame_words - 1;

at::Tensor words_tensor(std::int64_t count) { return at::zeros(count, at::kLong); }

/// The memory of a contiguous tensor, whatever its type.
at::Tensor bytes_of(const at::Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, [kept = tensor](void*) {},
      at::kByte);
}

}  // namespace

void post_forms(GlooMesh& mesh, const TensorForms& forms, int to, int tag, Operations& started) {
  require_on_cpu(forms);
  const std::vector<std::int64_t> words = to_words(forms);
  const auto count = static_cast<std::int64_t>(words.size());
  const at::Tensor message = words_tensor(std::max(frame_words, count + 1));
  auto* const place = message.mutable_data_ptr<std::int64_t>();
  *place = count;
  std::ranges::copy(words, place + 1);
  started.push_back(mesh.send(bytes_of(message.narrow(0, 0, frame_words)), to, tag));
  if (count > words_in_frame)
    started.push_back(
        mesh.send(bytes_of(message.narrow(0, frame_words, count - words_in_frame)), to, tag));
}

TensorForms receive_forms(GlooMesh& mesh, int from, int tag) {
  const at::Tensor frame = words_tensor(frame_words);
  mesh.wait(mesh.receive(bytes_of(frame), from, tag));
  const auto* const place = frame.const_data_ptr<std::int64_t>();
  const std::int64_t count = *place;
  std::vector<std::int64_t> words(place + 1, place + 1 + std::min(count, words_in_frame));
  if (count > words_in_frame) {
    const at::Tensor rest = words_tensor(count - words_in_frame);
    mesh.wait(mesh.receive(bytes_of(rest), from, tag));
    const auto* const more = rest.const_data_ptr<std::int64_t>();
    words.insert(words.end(), more, more + rest.numel());
  }
  return forms_from_words(words);
}

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

Tensors receive_tensors(GlooMesh& mesh, const TensorForms& forms, int from, int tag) {
  const Tensors tensors = tensors_like(forms);
  Operations started;
  post_receives(mesh, tensors, from, tag, started);
  for (const GlooMesh::Operation& operation : started)
    mesh.wait(operation);
  set_requires_grad(tensors, forms);
  return tensors;
}

}  // namespace pipewright::exec
