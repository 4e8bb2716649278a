#pragma once

// With which instructions a CPU computes. Kernels for different ones add up in another order or
// round otherwise, so two machines give the same bits only if both compute with the same.

#include <string>

#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// From now on ATen, MKL and oneDNN compute with this branch, in the whole process, and MKL gives
/// equal products for equal operands wherever they lie in memory, which it promises in its strict
/// mode alone (oneMKL Developer Guide, "Conditional Numerical Reproducibility").
///
/// Best: what each of them takes for the best on this CPU. The others are the same on every CPU
/// that has them: avx2 and avx512 on Intel's, compatible on all (MKL has no other branch that
/// Intel's and others' CPUs share).
///
/// It holds from the first call on, which must come before LibTorch computes. Throws InputError
/// when this CPU lacks the branch, LibTorch has computed already, or the process has another
/// branch.
void use_cpu_branch(plan::CpuBranch branch);

/// What this process computes with, in words: "avx2", or "the best of …" with the CPU.
std::string cpu_branch_in_words();

}  // namespace pipewright::exec
