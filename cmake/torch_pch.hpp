// Precompiled for every target that uses LibTorch: half the time of such a source goes into parsing
// it. Sources still include what they use and also build with PIPEWRIGHT_PCH=OFF.
#pragma once

#include <torch/torch.h>
