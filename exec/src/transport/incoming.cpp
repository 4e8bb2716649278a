#include "incoming.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {
namespace {

constexpr int least_ahead = 2;  // one to be used next, and one that may arrive meanwhile
constexpr std::int64_t most_bytes_ahead = 8 << 20;

Route route_of(const Transfer& transfer) {
  const auto& [kind, stage, microbatch] = key_of(transfer.instruction);
  return {kind, stage, transfer.from};
}

}  // namespace

void Incoming::begin_pass() {
  for (auto& [name, route] : routes_)
    route.is_awaited = route.is_open = false;
}

void Incoming::expect(const Transfer& transfer) {
  if (options_.dynamic)
    return;
  awaited_.push_back({transfer});
  places_[key_of(transfer.instruction)] = std::prev(awaited_.end());
  if (options_.ahead)
    await_message(transfer);
}

Tensors Incoming::take(const Transfer& transfer) {
  if (options_.dynamic)
    return take_dynamic(transfer);
  const auto key = key_of(transfer.instruction);
  if (!places_.contains(key) && !there_.contains(key))
    expect(transfer);
  open_message(transfer);
  Tensors tensors;
  if (auto there = there_.extract(key); !there.empty()) {
    tensors = std::move(there.mapped());
  } else {
    const auto place = places_.extract(key).mapped();
    if (!place->is_posted)
      post(*place);
    Awaited awaited = std::move(*place);
    awaited_.erase(place);
    tensors = wait_for(std::move(awaited));
  }
  post_ahead();
  return tensors;
}

Tensors Incoming::take_dynamic(const Transfer& transfer) const {
  const Line line = line_of_(transfer);
  const AwaitedMessage message =
      exec::await_message(*line.mesh, least_room, transfer.from, line.tag);
  return open(*line.mesh, message, transfer.from, line.tag).tensors;
}

/// Posts the receive of the route's first message, once per route and pass.
void Incoming::await_message(const Transfer& transfer) {
  OfRoute& route = routes_[route_of(transfer)];
  if (std::exchange(route.is_awaited, true))
    return;
  const Line line = line_of_(transfer);
  route.message =
      exec::await_message(*line.mesh, room_for(route.forms), transfer.from, line.message_tag);
}

/// Waits for the first message of the transfer's route in this pass.
void Incoming::open_message(const Transfer& transfer) {
  await_message(transfer);
  OfRoute& route = routes_.at(route_of(transfer));
  if (route.is_open)
    return;
  const Line line = line_of_(transfer);
  ReceivedMessage message = open(*line.mesh, route.message, transfer.from, line.message_tag);
  route.is_open = true;
  route.message = {};
  route.forms = std::move(message.forms);
  const auto& [kind, stage, microbatch] = key_of(transfer.instruction);
  const plan::InstructionKey key{kind, stage, message.note};
  if (const auto place = places_.extract(key); !place.empty())
    awaited_.erase(place.mapped());
  there_[key] = std::move(message.tensors);
}

void Incoming::post_ahead() {
  if (!options_.ahead || posted_ == static_cast<int>(awaited_.size()))
    return;
  for (Awaited& awaited : awaited_) {
    const OfRoute& route = routes_.at(route_of(awaited.transfer));
    if (awaited.is_posted || !route.is_open)
      continue;
    if (posted_ >= least_ahead && posted_bytes_ + bytes_of(route.forms) > most_bytes_ahead)
      return;
    post(awaited);
  }
}

void Incoming::post(Awaited& awaited) {
  const Line line = line_of_(awaited.transfer);
  const TensorForms& forms = routes_.at(route_of(awaited.transfer)).forms;
  awaited.is_posted = true;
  const ChargeTo transport(nullptr);
  awaited.tensors = tensors_like(forms);
  post_receives(*line.mesh, awaited.tensors, awaited.transfer.from, line.tag, awaited.operations);
  ++posted_;
  posted_bytes_ += bytes_of(forms);
}

Tensors Incoming::wait_for(Awaited awaited) {
  GlooMesh& mesh = *line_of_(awaited.transfer).mesh;
  for (const GlooMesh::Operation& operation : awaited.operations)
    mesh.wait(operation);
  const TensorForms& forms = routes_.at(route_of(awaited.transfer)).forms;
  for (const at::Tensor& tensor : awaited.tensors)
    take_charge_of(tensor);
  set_requires_grad(awaited.tensors, forms);
  --posted_;
  posted_bytes_ -= bytes_of(forms);
  return std::move(awaited.tensors);
}

}  // namespace pipewright::exec
