// Returns the message of the InputError that a piece of code throws.
#pragma once

#include <string>

#include "pipewright/plan/error.hpp"

namespace pipewright::test {

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const plan::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace pipewright::test
