#include "forwarded.hpp"

#include <fcntl.h>

#include <cstdlib>
#include <string>

namespace pipewright::exec {

void forward(const FileDescriptor& file, const char* variable) {
  fcntl(file.get(), F_SETFD, 0);
  setenv(variable, std::to_string(file.get()).c_str(), /*overwrite=*/1);
}

FileDescriptor forwarded(const char* variable) {
  const char* const number = std::getenv(variable);
  if (number == nullptr)
    return {};
  FileDescriptor file(std::atoi(number));
  unsetenv(variable);
  fcntl(file.get(), F_SETFD, FD_CLOEXEC);
  return file;
}

}  // namespace pipewright::exec
