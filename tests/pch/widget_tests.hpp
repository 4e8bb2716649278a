#pragma once

#include <QTest>

#include "../../cmake/pch/widgets.hpp"
#include "../support/catch.hpp"
