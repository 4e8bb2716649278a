#pragma once

#include "../../cmake/pch/values.hpp"
#include "../support/catch.hpp"
