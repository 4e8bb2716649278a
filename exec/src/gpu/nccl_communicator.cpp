#include "nccl_communicator.hpp"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "job/watch.hpp"
#include "nccl_library.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Returns the unique id that all members share: the first member creates it and the others read it
/// from the store.
ncclUniqueId common_id(c10d::Store& store, const std::string& name, bool is_first) {
  ncclUniqueId id{};
  if (is_first) {
    NcclLibrary::get().require(NcclLibrary::get().get_unique_id(&id), "a new communicator");
    store.set(name, Bytes(std::begin(id.internal), std::end(id.internal)));
  } else {
    const Bytes bytes = store.get(name);
    std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof id.internal), id.internal);
  }
  return id;
}

cudaStream_t stream_of(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native()->native_handle());
}

/// Connects all members by exchanging one byte with each of them.
void send_a_byte_to_all(const NcclLibrary& nccl, const std::string& name, ncclComm_t made, int size,
                        int self, at::Device device, const Stream& stream) {
  const auto require = [&](ncclResult_t result) { nccl.require(result, name); };
  const OnStream on_stream(stream);
  const at::Tensor bytes = at::zeros({2, size}, at::TensorOptions(at::kByte).device(device));
  auto* const place = static_cast<std::uint8_t*>(bytes.mutable_data_ptr());
  require(nccl.group_start());
  for (int member = 0; member < size; ++member)
    if (member != self) {
      require(nccl.send(place + member, 1, ncclUint8, member, made, stream_of(stream)));
      require(nccl.receive(place + size + member, 1, ncclUint8, member, made, stream_of(stream)));
    }
  require(nccl.group_end());
  stream.finish();
}

}  // namespace

struct NcclCommunicator::State {
  const NcclLibrary& nccl = NcclLibrary::get();
  std::mutex mutex;  // held while submitting, which does not block
  ncclComm_t communicator = nullptr;
  bool aborted = false;

  ~State() { end(); }
  void end() {
    const std::lock_guard lock(mutex);
    aborted = true;
    if (communicator != nullptr)
      nccl.abort(communicator);
    communicator = nullptr;
  }
};

NcclCommunicator::NcclCommunicator(Job& job, const std::string& name, std::vector<int> members,
                                   at::Device device)
    : job_(job),
      name_(name),
      members_(std::move(members)),
      stream_(Stream::of(device, /*urgent=*/true)),
      state_(std::make_shared<State>()) {
  if (AccountEntry* const account = current_account())
    charge_stream(stream_, account);
  const int size = static_cast<int>(members_.size()), self = index_of(job.rank());
  // The thread owns all that it uses, because it may have to be abandoned.
  job.watch().run_interruptibly("the setup of NCCL connections", [state = state_,
                                                                  store = job.watch().store("nccl"),
                                                                  name, size, self, device,
                                                                  stream = stream_] {
    const c10::DeviceGuard guard(device);
    const auto require = [&](ncclResult_t result) { state->nccl.require(result, name); };
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t made = nullptr;
    require(state->nccl.init_rank(&made, size, common_id(*store, name, self == 0), self, &config));
    {
      const std::lock_guard lock(state->mutex);
      state->communicator = made;
    }
    send_a_byte_to_all(state->nccl, name, made, size, self, device, stream);
  });
}

NcclCommunicator::~NcclCommunicator() {
  state_->end();
  try {
    stream_.finish();  // work that has ended no longer touches memory, which is freed next
  } catch (const std::exception&) {
    // The device has failed. The threads that wait for results report that.
  }
}

int NcclCommunicator::index_of(int rank) const {
  return static_cast<int>(std::lower_bound(members_.begin(), members_.end(), rank) -
                          members_.begin());
}

Event NcclCommunicator::move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  const Event made = Event::now();
  const OnStream on_stream(stream_);
  for (const Outgoing& each : out)
    adopt(each.values, made);
  made.wait();
  const std::lock_guard lock(state_->mutex);
  if (state_->aborted) {
    job_.require_going();
    throw Aborted();
  }
  const NcclLibrary& nccl = state_->nccl;
  const auto stream = stream_of(stream_);
  nccl.require(nccl.group_start(), "a transfer");
  for (const Outgoing& each : out)
    for (const at::Tensor& value : each.values)
      nccl.require(nccl.send(value.const_data_ptr(), value.nbytes(), ncclUint8, index_of(each.to),
                             state_->communicator, stream),
                   "a send");
  for (const Incoming& each : in)
    for (const at::Tensor& place : each.places)
      nccl.require(nccl.receive(place.mutable_data_ptr(), place.nbytes(), ncclUint8,
                                index_of(each.from), state_->communicator, stream),
                   "a receive");
  nccl.require(nccl.group_end(), "a transfer");
  return Event::now();
}

std::string NcclCommunicator::failure() const {
  const std::lock_guard lock(state_->mutex);
  const NcclLibrary& nccl = state_->nccl;
  ncclResult_t error = ncclSuccess;
  if (state_->communicator == nullptr)
    return "";
  if (const auto asked = nccl.async_error(state_->communicator, &error); asked != ncclSuccess)
    error = asked;
  return error == ncclSuccess || error == ncclInProgress
             ? ""
             : fmt::format("NCCL, {}: {}: {}", name_, nccl.error_string(error),
                           nccl.last_error(state_->communicator));
}

void NcclCommunicator::abort() { state_->end(); }

void NcclCommunicator::close() {
  // The handle is out of reach of `abort`, because the thread that ends it may have to be
  // abandoned.
  ncclComm_t ending = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    state_->aborted = true;
    ending = std::exchange(state_->communicator, nullptr);
  }
  if (ending == nullptr)
    return;
  job_.watch().run_interruptibly("the end of NCCL's connections",
                                 [state = state_, ending, name = name_, device = stream_.device()] {
                                   const c10::DeviceGuard guard(device);
                                   state->nccl.require(state->nccl.finalize(ending), name);
                                   state->nccl.require(state->nccl.destroy(ending), name);
                                 });
}

}  // namespace pipewright::exec
