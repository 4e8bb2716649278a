#pragma once

// Memory shared by all members of a communicator, threads or processes: their identities, and a
// lane of bytes for each ordered pair. All map one file, whose name is stored in the ncclUniqueId.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace pipewright::standin {

constexpr int most_members = 16;

/// Data on the way from one member to another. As in NCCL, it buffers some bytes without a
/// receiver: a send is over when its last bytes are buffered, and they are lost with the sender.
struct Lane {
  static constexpr std::size_t room = std::size_t{1} << 15;
  std::uint64_t written = 0, read = 0;    // bytes
  std::uint64_t sends = 0, receives = 0;  // that have begun
  std::byte bytes[room];

  bool is_empty() const { return written == read; }
  /// Returns how many of `count` bytes there was room for.
  std::size_t write(const std::byte* from, std::size_t count);
  /// Returns how many of `count` bytes were available.
  std::size_t take(std::byte* to, std::size_t count);
};

struct Member {
  bool here = false;
  bool finished = false;  // has called ncclCommFinalize
  bool aborted = false;
  char host[128];
  char device[64];
};

class Exchange {
 public:
  /// Creates a new exchange and returns its path, for the other members.
  static std::string make();
  /// Opens an exchange without waiting for other members.
  Exchange(const std::string& path, int members);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  int size() const { return size_; }
  /// Both functions require the lock.
  Member& member(int rank);
  Lane& lane(int from, int to);

  class Lock {
   public:
    explicit Lock(Exchange& exchange);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Exchange& exchange_;
  };

  /// Wakes waiting members.
  void changed();
  std::uint32_t changes() const;
  /// Blocks until something has changed since `seen`, or for a short time.
  void wait(std::uint32_t seen) const;
  /// Removes the file's name when no more members will join. Requires the lock.
  void forget_name();

 private:
  struct Layout;
  std::string path_;
  int size_;
  std::size_t bytes_;
  Layout* shared_;
};

}  // namespace pipewright::standin
