#include "coming_together.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "handed_on.hpp"

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

void ComingTogether::hand_on() const { exec::hand_on(theirs_, variable); }

void ComingTogether::all_started() { close_once(theirs_); }

bool ComingTogether::is_going_on() const {
  pollfd end{.fd = ours_, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) == 0;  // nobody holds the other end: POLLHUP
}

void has_come_together() {
  if (const auto end = handed_on(variable))
    close(*end);
}

}  // namespace pipewright::exec
