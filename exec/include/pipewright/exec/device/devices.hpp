#pragma once

// The devices that ranks compute on: the CPU, a GPU or a part of one.

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// The device of a rank.
struct RankDevice {
  at::Device device = at::kCPU;
  /// Several ranks may share a GPU. With `parts` above 1 each has its own multiprocessors: part
  /// `part` of `parts` equal ones, as if it were a smaller GPU.
  int part = 0;
  int parts = 1;
};

/// The GPUs of this machine.
struct Gpus {
  std::vector<std::string> names;  // such as "NVIDIA H200"
  std::string why_none;            // the reason why there is none; empty if there are some
};

/// Returns the GPUs. The first call loads LibTorch's CUDA libraries, so it must precede any other
/// use of LibTorch, which looks for them only once.
const Gpus& gpus();

/// Loads each kernel at its first launch. Call before the first `gpus`, in a process that does not
/// use NCCL. Loading all kernels at once takes seconds, but is required if kernels are launched
/// while a receive of NCCL is posted.
void load_kernels_as_launched();

/// Assigns one of `gpus` GPUs to each of `ranks` ranks of this process; with more ranks than GPUs,
/// consecutive ranks share one. `partitioned`: ranks that share a GPU get their own
/// multiprocessors.
std::vector<RankDevice> assign_gpus(int ranks, int gpus, bool partitioned);
/// Assigns the GPUs of this machine. Throws InputError that says why there is none.
std::vector<RankDevice> on_gpus(int ranks, bool partitioned = false);

/// While it exists, this thread computes on a device as a rank does: on its own stream, with memory
/// charged to `account`, including backwards. On the CPU it has no effect.
class OnDevice {
 public:
  OnDevice(const RankDevice& where, const MemoryAccount& account);
  ~OnDevice();
  /// Blocks until the device has finished all work that this thread submitted.
  void finish() const;
  /// Returns true if the device has finished.
  bool is_done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the name of the hardware that decides the bits of results: the branch of the CPU, or the
/// GPU's name.
std::string device_in_words(const RankDevice& where);

/// Returns the bytes that LibTorch retains for cuBLAS on this thread's stream and charges to the
/// rank; 0 on the CPU. They consist of a workspace (of size CUBLAS_WORKSPACE_CONFIG) for each
/// thread that has computed products there, and a smaller one for products with a bias.
plan::Bytes product_workspaces(const RankDevice& where);
/// Frees the workspaces of all streams. No GPU may be computing meanwhile.
void release_product_workspaces();

/// Makes LibTorch compute with the same bits each time on GPUs, or throw if it cannot, as exact
/// mode requires. Applies to the whole process from now on.
void compute_reproducibly();

/// Returns the GPU for the `local_rank`th process of this machine, among those visible to this
/// process. If there are more processes than GPUs they share them. Throws InputError if there is no
/// GPU.
RankDevice gpu_of_process(int local_rank);

}  // namespace pipewright::exec
