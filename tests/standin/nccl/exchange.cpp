#include "exchange.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>

namespace pipewright::standin {

struct Exchange::Layout {
  pthread_mutex_t mutex;
  std::atomic<std::uint32_t> changes;
  Member members[most_members];
  Lane lanes[1];  // one for each pair, by sender and then receiver
};

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// Makes a robust mutex: if a member dies while holding it, the others can recover it.
void make_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex, &kind);
  ::pthread_mutexattr_destroy(&kind);
}

void* map(int file, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    fail("mmap");
  return memory;
}

/// Calls `each` for every contiguous piece of `count` bytes from `first` on, an offset over the
/// life of a lane. Arguments are the piece's place in the lane, the bytes before it, and its size.
template <class Each>
void for_pieces(std::uint64_t first, std::size_t count, const Each& each) {
  for (std::size_t at = 0; at < count;) {
    const auto place = static_cast<std::size_t>((first + at) % Lane::room);
    const std::size_t piece = std::min(count - at, Lane::room - place);
    each(place, at, piece);
    at += piece;
  }
}

}  // namespace

std::size_t Lane::write(const std::byte* from, std::size_t count) {
  const std::size_t some = std::min(count, room - static_cast<std::size_t>(written - read));
  for_pieces(written, some, [&](std::size_t place, std::size_t at, std::size_t piece) {
    std::memcpy(bytes + place, from + at, piece);
  });
  written += some;
  return some;
}

std::size_t Lane::take(std::byte* to, std::size_t count) {
  const std::size_t some = std::min(count, static_cast<std::size_t>(written - read));
  for_pieces(read, some, [&](std::size_t place, std::size_t at, std::size_t piece) {
    std::memcpy(to + at, bytes + place, piece);
  });
  read += some;
  return some;
}

std::string Exchange::make() {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/standin-nccl-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0 || ::ftruncate(file, sizeof(Layout)) != 0)
    fail(path);
  auto* const layout = new (map(file, sizeof(Layout))) Layout;
  make_mutex(layout->mutex);
  ::munmap(layout, sizeof(Layout));
  ::close(file);
  return path;
}

Exchange::Exchange(const std::string& path, int members)
    : path_(path),
      size_(members),
      bytes_(sizeof(Layout) + sizeof(Lane) * static_cast<std::size_t>(members * members)) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0)
    fail(path);
  shared_ = static_cast<Layout*>(map(file, bytes_));
  ::close(file);
}

Exchange::~Exchange() { ::munmap(shared_, bytes_); }

Member& Exchange::member(int rank) { return shared_->members[rank]; }
Lane& Exchange::lane(int from, int to) { return shared_->lanes[from * size_ + to]; }

Exchange::Lock::Lock(Exchange& exchange) : exchange_(exchange) {
  if (::pthread_mutex_lock(&exchange_.shared_->mutex) == EOWNERDEAD)
    ::pthread_mutex_consistent(&exchange_.shared_->mutex);
}
Exchange::Lock::~Lock() { ::pthread_mutex_unlock(&exchange_.shared_->mutex); }

void Exchange::changed() {
  shared_->changes.fetch_add(1);
  ::syscall(SYS_futex, &shared_->changes, FUTEX_WAKE, most_members * most_members, nullptr, nullptr,
            0);
}

std::uint32_t Exchange::changes() const { return shared_->changes.load(); }

void Exchange::wait(std::uint32_t seen) const {
  const timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  ::syscall(SYS_futex, &shared_->changes, FUTEX_WAIT, seen, &moment, nullptr, 0);
}

void Exchange::forget_name() { ::unlink(path_.c_str()); }

}  // namespace pipewright::standin
