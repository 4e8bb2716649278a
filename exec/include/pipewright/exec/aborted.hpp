#pragma once

// The exception that ends a wait when another rank has stopped.

#include <stdexcept>
#include <string>

namespace pipewright::exec {

/// Thrown from a wait, in a job or in a transport, because another rank has stopped.
class Aborted : public std::runtime_error {
 public:
  explicit Aborted(const std::string& why = "another rank has stopped") : std::runtime_error(why) {}
};

}  // namespace pipewright::exec
