#include "pipewright/exec/cpu/cpu_branch.hpp"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

using plan::CpuBranch;

/// The names that ATen, oneDNN and MKL have for a branch, and the name that ATen reports once it
/// uses it.
struct Names {
  const char* aten;
  const char* taken;
  const char* onednn;
  int mkl;
};

// Values of mkl_types.h in oneMKL.
constexpr int mkl_compatible = 3, mkl_avx2 = 10, mkl_avx512 = 12, mkl_strict = 0x10000;

Names names_of(CpuBranch branch) {
  switch (branch) {
    case CpuBranch::Avx2:
      return {"avx2", "AVX2", "AVX2", mkl_avx2 | mkl_strict};
    case CpuBranch::Avx512:
      return {"avx512", "AVX512", "AVX512_CORE", mkl_avx512 | mkl_strict};
    case CpuBranch::Compatible:
    case CpuBranch::Best:
      break;
  }
  return {"default", "DEFAULT", "SSE41", mkl_compatible};
}

/// Returns one of MKL's own functions, which libtorch_cpu exports; null if LibTorch was built
/// without MKL.
template <class Function>
Function* mkl(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// Turns on MKL's strict mode. It exists for the branches from AVX2 on, which MKL chooses on Intel
/// CPUs only. Results of MKL's other kernels are not known to depend on the alignment of operands;
/// ATen's tensors begin at multiples of 64 bytes.
void make_best_strict() {
  auto* const best = mkl<int()>("mkl_serv_cbwr_get_auto_branch");
  auto* const set = mkl<int(int)>("mkl_serv_cbwr_set");
  if (best != nullptr && set != nullptr && best() >= mkl_avx2)
    set(best() | mkl_strict);
}

[[noreturn]] void refuse(CpuBranch branch, const std::string& why) {
  throw plan::InputError(fmt::format("training.cpu_branch {}: {}", plan::to_string(branch), why));
}

bool cpu_has(CpuBranch branch) {
#if defined(__x86_64__)
  if (branch == CpuBranch::Avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (branch == CpuBranch::Avx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return true;
#else
  return branch == CpuBranch::Best;
#endif
}

void pin(CpuBranch branch) {
  if (!cpu_has(branch))
    refuse(branch, "this CPU does not support it. Use compatible, which works everywhere");
  const Names names = names_of(branch);
  // Each library reads its variable once, at its first computation.
  setenv("ATEN_CPU_CAPABILITY", names.aten, /*overwrite=*/1);
  setenv("ONEDNN_MAX_CPU_ISA", names.onednn, /*overwrite=*/1);
  if (at::get_cpu_capability() != names.taken)
    refuse(
        branch,
        fmt::format(
            "LibTorch has already computed with {}. Choose the branch before the first computation",
            at::get_cpu_capability()));
  auto* const set = mkl<int(int)>("mkl_serv_cbwr_set");
  if (set == nullptr)
    refuse(branch, "this LibTorch was built without MKL. Use best");
  if (set(names.mkl) != 0)
    refuse(branch,
           branch == CpuBranch::Compatible
               ? "MKL has already computed. Choose the branch before the first computation"
               : "MKL does not have it on this CPU. Use compatible, which works everywhere");
}

std::mutex& branch_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::optional<CpuBranch> used_branch;

/// Returns vendor, family and model, such as "GenuineIntel 6-207". Two CPUs with the same name may
/// differ; with the same numbers they do not.
std::string cpu_in_words() {
  std::ifstream info("/proc/cpuinfo");
  std::string vendor = "unknown", family = "?", model = "?";
  const auto value_of = [](const std::string& line) { return line.substr(line.find(": ") + 2); };
  for (std::string line; std::getline(info, line) && !line.empty();)
    if (line.starts_with("vendor_id"))
      vendor = value_of(line);
    else if (line.starts_with("cpu family"))
      family = value_of(line);
    else if (line.starts_with("model\t"))
      model = value_of(line);
  return fmt::format("{} {}-{}", vendor, family, model);
}

}  // namespace

void use_cpu_branch(CpuBranch branch) {
  const std::lock_guard lock(branch_mutex());
  if (used_branch == branch)
    return;
  if (used_branch)
    refuse(branch,
           fmt::format("this process already computes with {}", plan::to_string(*used_branch)));
  if (branch == CpuBranch::Best)
    make_best_strict();
  else
    pin(branch);
  used_branch = branch;
}

std::string cpu_branch_in_words() {
  const std::lock_guard lock(branch_mutex());
  if (used_branch && *used_branch != CpuBranch::Best)
    return plan::to_string(*used_branch);
  return fmt::format("the best of {} ({})", cpu_in_words(), at::get_cpu_capability());
}

}  // namespace pipewright::exec
