#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/device/loaded_library.hpp"

namespace pipewright::exec {
namespace {

/// Same layout as at::cuda::WorkspaceMapWithMutex, whose header (ATen/cuda/CUDAContextLight.h)
/// includes headers of libraries that are not needed here.
struct WorkspaceMap {
  std::map<std::tuple<void*, void*>, at::DataPtr> map;  // by handle and stream
  std::shared_mutex mutex;
};

/// Functions of LibTorch's CUDA library that report its workspaces for matrix products. Programs
/// are not linked to it, because most machines do not have it.
struct Workspaces {
  using Map = WorkspaceMap& (*)();
  using Size = std::size_t (*)();

  Workspaces() {
    const LoadedLibrary torch_cuda("LibTorch's CUDA library", "libtorch_cuda.so");
    torch_cuda.find("_ZN2at4cuda33cublas_handle_stream_to_workspaceEv", products);
    torch_cuda.find("_ZN2at4cuda22getChosenWorkspaceSizeEv", size_for_products);
    torch_cuda.find("_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv", products_with_bias);
    torch_cuda.find("_ZN2at4cuda26getCUDABlasLtWorkspaceSizeEv", size_with_bias);
    torch_cuda.find("_ZN2at4cuda21clearCublasWorkspacesEv", clear);
  }

  static const Workspaces& get() {
    static const Workspaces found;
    return found;
  }

  Map products, products_with_bias;
  Size size_for_products, size_with_bias;
  void (*clear)();
};

/// Returns the bytes of all workspaces on the stream, of any handle.
std::int64_t bytes_on(Workspaces::Map of, Workspaces::Size size, void* stream) {
  WorkspaceMap& workspaces = of();
  const std::shared_lock lock(workspaces.mutex);
  const auto count =
      std::count_if(workspaces.map.begin(), workspaces.map.end(),
                    [stream](const auto& each) { return std::get<1>(each.first) == stream; });
  return count * static_cast<std::int64_t>(size());
}

}  // namespace

plan::Bytes workspaces_of_stream(const RankDevice& where) {
  void* const stream = c10::cuda::getCurrentCUDAStream(where.device.index()).stream();
  const Workspaces& all = Workspaces::get();
  return {bytes_on(all.products, all.size_for_products, stream) +
          bytes_on(all.products_with_bias, all.size_with_bias, stream)};
}

void release_workspaces() { Workspaces::get().clear(); }

}  // namespace pipewright::exec
