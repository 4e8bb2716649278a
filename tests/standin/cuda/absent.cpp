// Functions of CUDA's runtime that LibTorch references and that no training in these tests calls.
// They end the process, so that no caller relies on a fake result.

#include <cstdio>
#include <cstdlib>

#define PIPEWRIGHT_ABSENT(name)                                  \
  extern "C" int name() {                                        \
    std::fputs("stand-in: " #name " has no stand-in\n", stderr); \
    std::abort();                                                \
  }

PIPEWRIGHT_ABSENT(cudaDeviceGetDefaultMemPool)
PIPEWRIGHT_ABSENT(cudaFreeAsync)
PIPEWRIGHT_ABSENT(cudaGetSymbolAddress)
PIPEWRIGHT_ABSENT(cudaGraphDebugDotPrint)
PIPEWRIGHT_ABSENT(cudaGraphGetNodes)
PIPEWRIGHT_ABSENT(cudaGraphNodeGetDependencies)
PIPEWRIGHT_ABSENT(cudaIpcCloseMemHandle)
PIPEWRIGHT_ABSENT(cudaIpcGetEventHandle)
PIPEWRIGHT_ABSENT(cudaIpcGetMemHandle)
PIPEWRIGHT_ABSENT(cudaIpcOpenEventHandle)
PIPEWRIGHT_ABSENT(cudaIpcOpenMemHandle)
PIPEWRIGHT_ABSENT(cudaMallocAsync)
PIPEWRIGHT_ABSENT(cudaMemPoolGetAttribute)
PIPEWRIGHT_ABSENT(cudaMemPoolSetAccess)
PIPEWRIGHT_ABSENT(cudaMemPoolSetAttribute)
PIPEWRIGHT_ABSENT(cudaMemPoolTrimTo)
PIPEWRIGHT_ABSENT(cudaMemcpy2DAsync)
PIPEWRIGHT_ABSENT(cudaMemcpyToSymbol)
PIPEWRIGHT_ABSENT(cudaProfilerStart)
PIPEWRIGHT_ABSENT(cudaProfilerStop)
PIPEWRIGHT_ABSENT(cudaStreamGetPriority)

/// Reports that no driver function exists which LibTorch looks up at run time.
extern "C" int cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                                unsigned long long, int* status) {
  *function = nullptr;
  if (status != nullptr)
    *status = 1;  // cudaDriverEntryPointSymbolNotFound
  return 0;
}
