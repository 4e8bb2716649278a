#pragma once

// LibTorch has a CHECK of its own: the last one holds.
#include "../../cmake/pch/tensors.hpp"
#include "../support/catch.hpp"
