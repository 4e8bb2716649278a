// Runs code in a child process that would end or damage this one.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <stdexcept>
#include <string>

namespace pipewright::test {

class Child {
 public:
  /// Runs `body(descriptor)`. `finish` and `kill` return what it writes there.
  template <class Body>
  explicit Child(const Body& body) {
    int ends[2];
    if (::pipe(ends) != 0)
      throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      run(body, ends[1]);
    }
    ::close(ends[1]);
    from_child_ = ends[0];
    if (process_ < 0)
      throw std::runtime_error("no child process");
  }
  ~Child() {
    if (process_ > 0)
      kill();
    ::close(from_child_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Blocks until the child has written its first byte, which is not returned later.
  void await_start() const {
    char first = 0;
    if (::read(from_child_, &first, 1) != 1)
      throw std::runtime_error("the child process did not start");
  }

  /// Waits for the end of `body` and returns what it wrote.
  std::string finish() {
    const std::string text = read_all();
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
    return text;
  }

  /// Kills the child and returns what it had written.
  std::string kill() {
    ::kill(process_, SIGKILL);
    return finish();
  }

 private:
  template <class Body>
  [[noreturn]] static void run(const Body& body, int descriptor) {
    try {
      body(descriptor);
    } catch (const std::exception& error) {
      write_all(descriptor, std::string("exception: ") + error.what());
    }
    ::_exit(0);
  }

  static void write_all(int descriptor, const std::string& text) {
    if (::write(descriptor, text.data(), text.size()) < 0)
      ::_exit(1);
  }

  std::string read_all() const {
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(from_child_, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<std::size_t>(size));
    return text;
  }

  pid_t process_ = -1;
  int from_child_ = -1;
};

/// Runs `body` in a child process and returns its result.
template <class Body>
std::string in_child(const Body& body) {
  return Child([&](int descriptor) {
           const std::string text = body();
           if (::write(descriptor, text.data(), text.size()) < 0)
             ::_exit(1);
         })
      .finish();
}

}  // namespace pipewright::test
