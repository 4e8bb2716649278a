// What the window reads in most of its sources. They still include what they use, and build with
// PIPEWRIGHT_PCH=OFF as well.
#pragma once

#include <fmt/format.h>

#include <QtWidgets>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>
