#pragma once

namespace pipewright::loop {

/// Thrown where somebody's stop flag ends the work.
struct Stopped {};

}  // namespace pipewright::loop
