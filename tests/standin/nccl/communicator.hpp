#pragma once

// A member's end of a communicator of the stand-in.

#include <nccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exchange.hpp"

namespace pipewright::standin {

/// A send or a receive.
struct Operation {
  bool is_send = false;
  std::byte* memory = nullptr;  // a send only reads it
  std::size_t bytes = 0;
  int peer = 0;

  std::uint64_t number = 0;    // on its lane, from 1; 0 if it has not begun
  std::size_t head_moved = 0;  // bytes of the size, which precedes the data
  std::uint64_t head = 0;
  std::size_t moved = 0;
  bool is_over() const { return head_moved == sizeof head && moved == bytes; }
};

class Communicator {
 public:
  /// Waits for the other members. Throws std::runtime_error if two members share a device of a
  /// host.
  Communicator(const std::string& path, int size, int rank, std::string device);
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return exchange_.size(); }

  void launched() { ++under_way_; }
  /// Runs operations that were launched together, on a stream's thread, until all are over or this
  /// end has been aborted. Errors are asynchronous, and a failed operation does not end.
  void run(std::vector<Operation> operations);

  /// Drops operations under way, and sent data that were not received yet.
  void abort();
  /// Blocks until all members have called it and all data have moved.
  ncclResult_t finalize();
  ncclResult_t error() const { return error_; }
  std::string words() const;  // of the last error

 private:
  bool advance(Operation& operation);
  void fail(ncclResult_t error, const std::string& words);

  Exchange exchange_;
  const int rank_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> finalized_{false};
  std::atomic<ncclResult_t> error_{ncclSuccess};
  std::atomic<int> under_way_{0};
  std::atomic<long> operations_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::string words_;
};

}  // namespace pipewright::standin
