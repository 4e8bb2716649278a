#include "coming_together.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace pipewright::exec {
namespace {

/// Says the number of the end that a rank holds.
constexpr const char* variable = "PIPEWRIGHT_COMING_TOGETHER";

void close_once(int& end) {
  if (end >= 0)
    close(end);
  end = -1;
}

}  // namespace

ComingTogether::ComingTogether() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  ours_ = ends[0];
  theirs_ = ends[1];
}

ComingTogether::~ComingTogether() {
  close_once(ours_);
  close_once(theirs_);
}

void ComingTogether::hand_on() const {
  fcntl(theirs_, F_SETFD, 0);
  setenv(variable, std::to_string(theirs_).c_str(), /*overwrite=*/1);
}

void ComingTogether::all_started() { close_once(theirs_); }

bool ComingTogether::is_going_on() const {
  pollfd end{.fd = ours_, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) == 0;  // nobody holds the other end: POLLHUP
}

void has_come_together() {
  const char* const number = std::getenv(variable);
  if (number == nullptr)
    return;
  close(std::atoi(number));
  unsetenv(variable);
}

}  // namespace pipewright::exec
