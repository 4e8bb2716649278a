#pragma once

// The kernels that LibTorch's libraries register, by name, and the operators that replace them.

namespace standin {

/// Loads the library that makes LibTorch's operators compute on the CPU, once LibTorch's CUDA
/// library is loaded.
void load_operators();

}  // namespace standin
