#include "first_letter.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace pipewright::exec {
namespace {

constexpr std::int64_t most_room = 1 << 20;
constexpr std::int64_t word = sizeof(std::int64_t);
// Count of the forms' words, microbatch, whether the tensors are there; then the words. Those that
// do not fit follow in a message of their own.
constexpr std::int64_t head_words = 64, told_first = 3, words_in_head = head_words - told_first;

/// Each begins where any type may.
std::int64_t place_of(std::int64_t bytes) {
  constexpr std::int64_t alignment = 16;
  return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t letter_bytes(const TensorForms& forms) {
  std::int64_t bytes = 0;
  for (const TensorForm& form : forms)
    bytes += place_of(bytes_of(form));
  return bytes;
}

at::Tensor empty_bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

/// Where the words of a message lie.
std::int64_t* words_of(const at::Tensor& message) {
  return reinterpret_cast<std::int64_t*>(message.data_ptr<std::uint8_t>());
}

}  // namespace

std::int64_t room_for(const TensorForms& forms) {
  const std::int64_t bytes = letter_bytes(forms);
  return bytes <= most_room ? bytes : 0;
}

bool post_first_letter(GlooMesh& mesh, const Tensors& tensors, const TensorForms& forms,
                       int microbatch, std::int64_t room, int to, int tag, Operations& started) {
  require_on_cpu(forms);
  const bool has_tensors = letter_bytes(forms) <= room;
  const std::vector<std::int64_t> told = to_words(forms);
  const auto count = static_cast<std::int64_t>(told.size());
  const at::Tensor message = empty_bytes(head_words * word + room);
  std::int64_t* const head = words_of(message);
  head[0] = count;
  head[1] = microbatch;
  head[2] = has_tensors ? 1 : 0;
  std::copy_n(told.begin(), std::min(count, words_in_head), head + told_first);
  std::uint8_t* place = message.data_ptr<std::uint8_t>() + head_words * word;
  for (std::size_t t = 0; has_tensors && t < tensors.size(); ++t)
    if (has_bytes(tensors[t])) {
      const at::Tensor values = values_of(tensors[t]);
      std::memcpy(place, values.const_data_ptr(), values.nbytes());
      place += place_of(static_cast<std::int64_t>(values.nbytes()));
    }
  started.push_back(mesh.send(message, to, tag));
  if (count > words_in_head) {
    const at::Tensor rest = empty_bytes((count - words_in_head) * word);
    std::copy(told.begin() + words_in_head, told.end(), words_of(rest));
    started.push_back(mesh.send(rest, to, tag));
  }
  return has_tensors;
}

AwaitedLetter await_first_letter(GlooMesh& mesh, std::int64_t room, int from, int tag) {
  at::Tensor bytes = empty_bytes(head_words * word + room);
  auto operation = mesh.receive(bytes, from, tag);
  return {std::move(bytes), std::move(operation)};
}

FirstLetter open(GlooMesh& mesh, const AwaitedLetter& awaited, int from, int tag) {
  mesh.wait(awaited.operation);
  const std::int64_t* const head = words_of(awaited.bytes);
  const std::int64_t count = head[0];
  std::vector<std::int64_t> told(head + told_first,
                                 head + told_first + std::min(count, words_in_head));
  if (count > words_in_head) {
    const at::Tensor rest = empty_bytes((count - words_in_head) * word);
    mesh.wait(mesh.receive(rest, from, tag));
    told.insert(told.end(), words_of(rest), words_of(rest) + count - words_in_head);
  }
  FirstLetter letter{forms_from_words(told), static_cast<int>(head[1]), {}};
  if (head[2] == 0)
    return letter;
  letter.tensors = tensors_like(letter.forms);
  const std::uint8_t* place = awaited.bytes.const_data_ptr<std::uint8_t>() + head_words * word;
  for (const at::Tensor& tensor : *letter.tensors)
    if (has_bytes(tensor)) {
      std::memcpy(tensor.data_ptr(), place, tensor.nbytes());
      place += place_of(static_cast<std::int64_t>(tensor.nbytes()));
    }
  set_requires_grad(*letter.tensors, letter.forms);
  return letter;
}

}  // namespace pipewright::exec
