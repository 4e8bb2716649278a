#include "mapping.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lfs_pointer.hpp"

namespace pipewright::plan {
namespace {

[[noreturn]] void fail_to_map(const std::filesystem::path& file, int descriptor,
                              const std::string& reason) {
  if (descriptor >= 0)
    ::close(descriptor);
  throw InputError(fmt::format("{}: cannot be read: {}", file.string(), reason));
}

}  // namespace

Mapping::Mapping(const std::filesystem::path& file, Pages pages) {
  // Non-blocking, so that opening a pipe does not wait for a writer.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    fail_to_map(file, descriptor, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail_to_map(file, descriptor, "it is not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  const int populate = pages == Pages::AtOnce ? MAP_POPULATE : 0;
  if (size_ > 0)
    bytes_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | populate, descriptor, 0);
  if (bytes_ == MAP_FAILED)
    fail_to_map(file, descriptor, std::strerror(errno));
  ::close(descriptor);
  try {
    reject_lfs_pointer(text(), file.string());
  } catch (const InputError&) {
    ::munmap(bytes_, size_);
    throw;
  }
}

Mapping::~Mapping() {
  if (bytes_ != nullptr)
    ::munmap(bytes_, size_);
}

}  // namespace pipewright::plan
