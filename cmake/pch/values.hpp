// What plan, sim and the command line read in most of their sources. They still include what they
// use, and build with PIPEWRIGHT_PCH=OFF as well.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>
