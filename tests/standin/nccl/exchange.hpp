#pragma once

// Memory that all members of a communicator share, whether they are threads or processes: who they
// are, and for each of them and each other one a lane of bytes. A file that all of them map; its
// name is what a ncclUniqueId holds.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace pipewright::standin {

constexpr int most_members = 16;

/// What is on its way from one member to another. As NCCL's, it takes some bytes without anybody
/// who receives them: a send is over when its last ones are in here, and they go with the sender.
struct Lane {
  static constexpr std::size_t room = std::size_t{1} << 15;
  std::uint64_t written = 0, read = 0;    // bytes
  std::uint64_t sends = 0, receives = 0;  // that have been begun
  std::byte bytes[room];

  bool is_empty() const { return written == read; }
  /// How many of `count` bytes there was room for.
  std::size_t write(const std::byte* from, std::size_t count);
  /// How many of `count` bytes there were.
  std::size_t take(std::byte* to, std::size_t count);
};

struct Member {
  bool here = false;
  bool finished = false;  // it has asked for the communicator's end in order
  bool aborted = false;
  char host[128];
  char device[64];
};

class Exchange {
 public:
  /// A new one; `path()` tells the others.
  static std::string make();
  /// Waits for nobody.
  Exchange(const std::string& path, int members);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  int size() const { return size_; }
  /// Both with the lock held.
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

  /// Wakes those that wait.
  void changed();
  std::uint32_t changes() const;
  /// Until something has changed since `seen`, or for a moment.
  void wait(std::uint32_t seen) const;
  /// With the lock held: no more members come.
  void forget_name();

 private:
  struct Layout;
  std::string path_;
  int size_;
  std::size_t bytes_;
  Layout* shared_;
};

}  // namespace pipewright::standin
