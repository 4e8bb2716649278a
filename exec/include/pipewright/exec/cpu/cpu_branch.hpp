#pragma once

// The instruction set with which a CPU computes. Kernels for different instruction sets sum in
// another order or round differently, so two machines give the same bits only if both use the same
// one.

#include <string>

#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// Makes ATen, MKL and oneDNN compute with this branch in the whole process. MKL then gives equal
/// products for equal operands wherever they lie in memory, which it guarantees only in its strict
/// mode (oneMKL Developer Guide, "Conditional Numerical Reproducibility").
///
/// Best: each library's own choice for this CPU. The others are the same on every CPU that supports
/// them: avx2 and avx512 on Intel's, compatible on all (MKL has no other branch that Intel's and
/// other CPUs share).
///
/// Takes effect with the first call, which must precede any computation of LibTorch. Throws
/// InputError if this CPU does not support the branch, LibTorch has computed already, or the
/// process has set another branch.
void use_cpu_branch(plan::CpuBranch branch);

/// Returns the branch of this process as text: "avx2", or "the best of …" with the CPU.
std::string cpu_branch_in_words();

}  // namespace pipewright::exec
