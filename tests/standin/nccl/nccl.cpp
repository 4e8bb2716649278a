// The NCCL functions that Pipewright calls.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "communicator.hpp"
#include "standin/standin.hpp"

/// NCCL's handle. Streams keep the communicator alive until they have run its work.
struct ncclComm {
  std::shared_ptr<pipewright::standin::Communicator> communicator;
};

namespace {

using pipewright::standin::Communicator;
using pipewright::standin::Exchange;
using pipewright::standin::Operation;

thread_local std::string last_words;

ncclResult_t failed(ncclResult_t error, const std::string& words) {
  last_words = words;
  return error;
}

/// Returns a function of the CUDA runtime in this process; null if there is none.
template <class Function>
Function* of_runtime(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// Returns the device of this thread; empty if it is unknown.
std::string current_device() {
  int device = 0;
  const auto get_device = of_runtime<decltype(cudaGetDevice)>("cudaGetDevice");
  if (get_device == nullptr || get_device(&device) != cudaSuccess)
    return "";
  char bus[64] = {};
  const auto get_bus = of_runtime<decltype(cudaDeviceGetPCIBusId)>("cudaDeviceGetPCIBusId");
  if (get_bus != nullptr && get_bus(bus, sizeof bus, device) == cudaSuccess)
    return bus;
  return std::to_string(device);
}

/// The operations that a group, or a call outside of a group, submits at once to a communicator's
/// stream.
struct Launch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Operation> operations;
};

thread_local int group_depth = 0;
thread_local std::map<std::pair<ncclComm*, cudaStream_t>, Launch> group;

void run(void* data) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
  launch->communicator->run(std::move(launch->operations));
}

ncclResult_t launch(cudaStream_t stream, Launch what) {
  const auto give = of_runtime<decltype(cudaLaunchHostFunc)>("cudaLaunchHostFunc");
  if (give == nullptr)
    return failed(ncclUnhandledCudaError, "there is no CUDA runtime in this process");
  const auto tell = of_runtime<decltype(pipewright_standin_access)>("pipewright_standin_access");
  for (const Operation& each : what.operations)
    if (tell != nullptr && each.bytes > 0)
      tell(stream, each.memory, each.bytes, each.is_send ? 0 : 1,
           each.is_send ? "ncclSend" : "ncclRecv");
  what.communicator->launched();
  const auto error = give(stream, run, new Launch(std::move(what)));
  return error == cudaSuccess
             ? ncclSuccess
             : failed(ncclUnhandledCudaError,
                      fmt::format("cudaLaunchHostFunc: error {}", static_cast<int>(error)));
}

ncclResult_t launch_group() {
  ncclResult_t result = ncclSuccess;
  for (auto& [place, what] : std::exchange(group, {}))
    if (const auto each = launch(place.second, std::move(what)); each != ncclSuccess)
      result = each;
  return result;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 1;
  }
}

ncclResult_t add(ncclComm* comm, cudaStream_t stream, Operation operation) {
  if (comm == nullptr || operation.peer < 0 || operation.peer >= comm->communicator->size() ||
      operation.peer == comm->communicator->rank())
    return failed(ncclInvalidArgument,
                  fmt::format("{} rank {}", operation.is_send ? "a send to" : "a receive from",
                              operation.peer));
  ncclGroupStart();
  Launch& launch = group[{comm, stream}];
  launch.communicator = comm->communicator;
  launch.operations.push_back(operation);
  return ncclGroupEnd();
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  if (comm != nullptr)
    last_words = comm->communicator->words();
  return last_words.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::string path = Exchange::make();
  *id = {};
  std::memcpy(id->internal, path.c_str(), std::min(path.size(), sizeof id->internal - 1));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (size < 1 || size > pipewright::standin::most_members || rank < 0 || rank >= size ||
      (config != nullptr && config->magic != 0xcafebeef))
    return failed(ncclInvalidArgument, fmt::format("rank {} of {}", rank, size));
  try {
    *comm = new ncclComm{std::make_shared<Communicator>(id.internal, size, rank, current_device())};
    return ncclSuccess;
  } catch (const std::exception& error) {
    return failed(ncclInvalidUsage, error.what());
  }
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const auto kept = comm->communicator;  // another thread may abort it meanwhile
  return kept->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ncclResult_t result = comm->communicator->finalize();
  delete comm;
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->communicator->abort();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->communicator->error();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->communicator->size();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->communicator->rank();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return --group_depth == 0 ? launch_group() : ncclSuccess; }

ncclResult_t ncclSend(const void* memory, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(memory));
  return add(comm, stream,
             {.is_send = true, .memory = bytes, .bytes = count * size_of(type), .peer = peer});
}

ncclResult_t ncclRecv(void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream,
             {.is_send = false,
              .memory = static_cast<std::byte*>(memory),
              .bytes = count * size_of(type),
              .peer = peer});
}

}  // extern "C"
