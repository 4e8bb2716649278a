#pragma once

// The kernels that LibTorch's libraries register, by name, and what computes in their place.

namespace standin {

/// Loads the library that makes LibTorch's operators compute on the CPU, once LibTorch's own for
/// CUDA is there.
void load_operators();

}  // namespace standin
