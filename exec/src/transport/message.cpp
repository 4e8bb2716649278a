#include "message.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {
namespace {

constexpr std::int64_t most_room = 1 << 20;
// Alignment of LibTorch's tensors, for the kernels.
constexpr std::int64_t alignment = 64;
constexpr std::int64_t head_bytes = alignment;

/// The header of a message.
struct MessageHead {
  std::int64_t content_bytes;  // size of the forms' words and the tensors
  std::int64_t words;
  std::int64_t note;
};
static_assert(sizeof(MessageHead) <= head_bytes);

MessageHead head_of(const at::Tensor& message) {
  MessageHead head{};
  std::memcpy(&head, message.const_data_ptr(), sizeof head);
  return head;
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::int64_t words_bytes(std::size_t words) {
  return aligned(static_cast<std::int64_t>(words * sizeof(std::int64_t)));
}

std::int64_t content_bytes(const TensorForms& forms, std::size_t words) {
  std::int64_t bytes = words_bytes(words);
  for (const TensorForm& form : forms)
    bytes += aligned(bytes_of(form));
  return bytes;
}

at::Tensor empty_bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

void write_content(const at::Tensor& message, std::int64_t at,
                   const std::vector<std::int64_t>& words, const Tensors& tensors) {
  std::uint8_t* place = message.data_ptr<std::uint8_t>() + at;
  std::memcpy(place, words.data(), words.size() * sizeof(std::int64_t));
  place += words_bytes(words.size());
  for (const at::Tensor& tensor : tensors)
    if (has_bytes(tensor)) {
      const at::Tensor values = values_of(tensor);
      std::memcpy(place, values.const_data_ptr(), values.nbytes());
      place += aligned(static_cast<std::int64_t>(values.nbytes()));
    }
}

/// Returns separate tensors, each with its own version counter, in the message's memory.
ReceivedMessage read_content(const at::Tensor& message, std::int64_t at, const MessageHead& head) {
  std::uint8_t* place = message.data_ptr<std::uint8_t>() + at;
  std::vector<std::int64_t> words(static_cast<std::size_t>(head.words));
  std::memcpy(words.data(), place, words.size() * sizeof(std::int64_t));
  place += words_bytes(words.size());
  ReceivedMessage received{forms_from_words(words), {}, static_cast<int>(head.note)};
  for (const TensorForm& form : received.forms) {
    const std::int64_t bytes = bytes_of(form);
    if (bytes > 0)
      received.tensors.push_back(at::from_blob(
          place, form.sizes, [message](void*) {}, at::TensorOptions(form.type)));
    else
      received.tensors.push_back(tensors_like({form}).front());
    place += aligned(bytes);
  }
  set_requires_grad(received.tensors, received.forms);
  return received;
}

}  // namespace

std::int64_t room_for(const TensorForms& forms) {
  const std::int64_t bytes = content_bytes(forms, to_words(forms).size());
  return bytes <= most_room ? std::max(bytes, least_room) : least_room;
}

at::Tensor post_what_fits(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room,
                          int to, int tag, Operations& started) {
  const TensorForms forms = forms_of(tensors);
  require_on_cpu(forms);
  const std::vector<std::int64_t> words = to_words(forms);
  const MessageHead head{content_bytes(forms, words.size()),
                         static_cast<std::int64_t>(words.size()), note};
  const at::Tensor message = empty_bytes(head_bytes + room);
  std::memcpy(message.data_ptr(), &head, sizeof head);
  const bool fits = head.content_bytes <= room;
  if (fits)
    write_content(message, head_bytes, words, tensors);
  started.push_back(mesh.send(message, to, tag));
  if (fits)
    return {};
  at::Tensor rest = empty_bytes(head.content_bytes);
  write_content(rest, 0, words, tensors);
  return rest;
}

void post_message(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room, int to,
                  int tag, Operations& started) {
  if (at::Tensor rest = post_what_fits(mesh, tensors, note, room, to, tag, started); rest.defined())
    started.push_back(mesh.send(std::move(rest), to, tag));
}

AwaitedMessage await_message(GlooMesh& mesh, std::int64_t room, int from, int tag) {
  const ChargeTo transport(nullptr);
  at::Tensor bytes = empty_bytes(head_bytes + room);
  auto operation = mesh.receive(bytes, from, tag);
  return {std::move(bytes), std::move(operation)};
}

BegunMessage begin_to_open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag) {
  mesh.wait(awaited.operation);
  take_charge_of(awaited.bytes);
  BegunMessage begun{.beginning = awaited.bytes, .rest = {}, .operation = {}};
  const MessageHead head = head_of(awaited.bytes);
  if (head_bytes + head.content_bytes > awaited.bytes.numel()) {
    begun.rest = empty_bytes(head.content_bytes);
    begun.operation = mesh.receive(begun.rest, from, tag);
  }
  return begun;
}

ReceivedMessage open(GlooMesh& mesh, const BegunMessage& begun) {
  const MessageHead head = head_of(begun.beginning);
  if (!begun.rest.defined())
    return read_content(begun.beginning, head_bytes, head);
  mesh.wait(begun.operation);
  return read_content(begun.rest, 0, head);
}

ReceivedMessage open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag) {
  return open(mesh, begin_to_open(mesh, awaited, from, tag));
}

}  // namespace pipewright::exec
