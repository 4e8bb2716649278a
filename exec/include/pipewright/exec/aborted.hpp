#pragma once

// How a wait ends that another rank's end has cut short.

#include <stdexcept>
#include <string>

namespace pipewright::exec {

/// Thrown from such a wait, in a job as in a transport.
class Aborted : public std::runtime_error {
 public:
  explicit Aborted(const std::string& why = "another rank has stopped") : std::runtime_error(why) {}
};

}  // namespace pipewright::exec
