// Tells if the GPU is the stand-in, which computes on the CPU.
#pragma once

#include <dlfcn.h>

namespace pipewright::test {

inline bool on_standin() { return dlsym(RTLD_DEFAULT, "pipewright_standin_listen") != nullptr; }

}  // namespace pipewright::test
