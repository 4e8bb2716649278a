#pragma once

// How long work ends when it is asked to stop.

namespace pipewright::loop {

/// Thrown where somebody's stop flag ends the work.
struct Stopped {};

}  // namespace pipewright::loop
