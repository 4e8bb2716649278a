#include "handed_on.hpp"

#include <fcntl.h>

#include <cstdlib>
#include <string>

namespace pipewright::exec {

void hand_on(int file, const char* variable) {
  fcntl(file, F_SETFD, 0);
  setenv(variable, std::to_string(file).c_str(), /*overwrite=*/1);
}

std::optional<int> handed_on(const char* variable) {
  const char* const number = std::getenv(variable);
  if (number == nullptr)
    return std::nullopt;
  const int file = std::atoi(number);
  unsetenv(variable);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
}

}  // namespace pipewright::exec
