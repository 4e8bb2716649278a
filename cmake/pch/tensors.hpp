// Headers that most sources with tensors use: ATen and autograd, but not all of torch/torch.h,
// whose templates GCC instantiates again in each source (5 s against 1.4).
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>
