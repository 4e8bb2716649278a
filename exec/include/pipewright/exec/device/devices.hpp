#pragma once

// The devices that ranks compute on: the CPU, a GPU or a part of one.

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// Where a rank computes.
struct RankDevice {
  at::Device device = at::kCPU;
  /// Several ranks may share a GPU. With `parts` above 1 each has multiprocessors of its own: part
  /// `part` of so many equal ones, as if it were a smaller GPU.
  int part = 0;
  int parts = 1;
};

/// The GPUs of this machine.
struct Gpus {
  std::vector<std::string> names;  // such as "NVIDIA H200"
  std::string why_none;            // empty where there are some
};

/// Loads LibTorch's CUDA libraries with the first call, which must come before LibTorch is used in
/// any other way: it looks for them once.
const Gpus& gpus();

/// Said before the first call of `gpus` by a process that uses no NCCL: kernels are loaded as they
/// are launched. All at once takes seconds, but launching while a receive of NCCL is posted needs
/// it.
void load_kernels_as_launched();

/// A GPU for each of `ranks` ranks of this process, neighbours on the same one where there are more
/// ranks than GPUs; `partitioned`: each on multiprocessors of its own then.
std::vector<RankDevice> dealt_out(int ranks, int gpus, bool partitioned);
/// Over the GPUs of this machine. Throws InputError that says why there is none.
std::vector<RankDevice> on_gpus(int ranks, bool partitioned = false);

/// While it lives, this thread computes on a device as a rank does: on a stream of its own, whose
/// memory is charged to `account`, backwards too. On the CPU it is nothing.
class OnDevice {
 public:
  OnDevice(const RankDevice& where, const MemoryAccount& account);
  ~OnDevice();
  /// Waits until the device has done all that this thread has given it.
  void finish() const;
  /// Whether it has.
  bool is_done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What decides the bits of what is computed there: the branch of the CPU, or the GPU's name.
std::string device_in_words(const RankDevice& where);

/// What LibTorch keeps for cuBLAS on this thread's stream and charges to the rank: a workspace (of
/// the size that CUBLAS_WORKSPACE_CONFIG says) for each thread that has asked for products there,
/// and a smaller one for products with a bias. They stay. Nothing is kept on the CPU.
plan::Bytes product_workspaces(const RankDevice& where);
/// Gives those of all streams free. Nothing may compute on a GPU meanwhile.
void release_product_workspaces();

/// From now on LibTorch computes on GPUs with the same bits each time, or throws where it cannot:
/// what exact mode needs there. It holds for the whole process.
void compute_reproducibly();

/// The GPU of a process that is the `local_rank`th of its machine, of those that this process is
/// shown. Where there are more processes than GPUs they share them. Throws InputError where there
/// is no GPU.
RankDevice gpu_of_process(int local_rank);

}  // namespace pipewright::exec
