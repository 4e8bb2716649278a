#pragma once

// LibTorch defines a CHECK as well; the last definition is used.
#include "../../cmake/pch/tensors.hpp"
#include "../support/catch.hpp"
