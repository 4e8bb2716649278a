#pragma once

// The results of the stand-in's calls, and the last error of the calling thread, which
// cudaGetLastError and cudaPeekAtLastError return.

#include <cuda_runtime_api.h>

namespace standin {

cudaError_t done(cudaError_t result = cudaSuccess);
cudaError_t take_last_error();
cudaError_t last_error();

}  // namespace standin
