// Headers that most sources of the window use. The sources still include what they use, and also
// build with PIPEWRIGHT_PCH=OFF.
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
