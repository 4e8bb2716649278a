// Headers that most sources of plan, sim and the command line use. The sources still include what
// they use, and also build with PIPEWRIGHT_PCH=OFF.
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
