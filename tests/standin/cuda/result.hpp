#pragma once

// How the calls of the stand-in end: the last error of the calling thread, as cudaGetLastError and
// cudaPeekAtLastError have it.

#include <cuda_runtime_api.h>

namespace standin {

cudaError_t done(cudaError_t result = cudaSuccess);
cudaError_t take_last_error();
cudaError_t last_error();

}  // namespace standin
