// Tests of the stand-in for NCCL. The test implements streams with a thread for each.

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/support/child.hpp"
#include "standin/standin.hpp"
#include "support/catch.hpp"

namespace standin_nccl_test {

using Bytes = std::vector<std::uint8_t>;

/// A stream that runs its work in order on its own thread.
class Stream {
 public:
  Stream() : thread_([this] { serve(); }) {}
  ~Stream() {
    give({});
    thread_.join();
  }
  cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(this); }

  void give(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    changed_.notify_all();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.empty(); });
  }

  std::vector<std::string> accesses;  // reported accesses

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      const auto work = waiting_.front();
      if (!work)
        return;
      lock.unlock();
      work();
      lock.lock();
      waiting_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // the first one is running
  std::thread thread_;
};

thread_local int device = 0;

void require(ncclResult_t result) {
  if (result != ncclSuccess)
    throw std::runtime_error(ncclGetErrorString(result));
}

/// One end of a communicator, with a stream.
class End {
 public:
  End(const ncclUniqueId& id, int size, int rank) {
    device = rank;
    require(ncclCommInitRank(&comm_, size, id, rank));
  }

  ~End() {
    if (comm_ != nullptr)
      abort();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void send(Bytes bytes, int to) {
    const Bytes& kept = kept_.emplace_back(std::move(bytes));
    require(ncclSend(kept.data(), kept.size(), ncclUint8, to, comm_, stream.handle()));
  }
  void receive(Bytes& bytes, int from) {
    require(ncclRecv(bytes.data(), bytes.size(), ncclUint8, from, comm_, stream.handle()));
  }
  std::string error() const {
    ncclResult_t error = ncclSuccess;
    ncclCommGetAsyncError(comm_, &error);
    return ncclGetErrorString(error);
  }
  std::string await_error() const {
    while (error() == "no error")
      std::this_thread::yield();
    return error() + ": " + ncclGetLastError(comm_);
  }
  std::string end() {
    const ncclResult_t result = ncclCommFinalize(comm_);
    ncclCommDestroy(std::exchange(comm_, nullptr));
    return ncclGetErrorString(result);
  }
  void abort() {
    ncclCommAbort(std::exchange(comm_, nullptr));
    stream.finish();
  }

  Stream stream;

 private:
  ncclComm_t comm_ = nullptr;
  std::deque<Bytes> kept_;  // under way
};

ncclUniqueId new_id() {
  ncclUniqueId id{};
  require(ncclGetUniqueId(&id));
  return id;
}

using Body = std::function<std::string(End&)>;

/// Runs each member's body on its own thread and returns their results.
std::vector<std::string> said_by(const std::vector<Body>& bodies) {
  const ncclUniqueId id = new_id();
  const int size = static_cast<int>(bodies.size());
  std::vector<std::string> said(bodies.size());
  std::vector<std::unique_ptr<End>> ends(bodies.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < bodies.size(); ++rank)
    threads.emplace_back([&, rank] {
      ends[rank] = std::make_unique<End>(id, size, static_cast<int>(rank));
      said[rank] = bodies[rank](*ends[rank]);
    });
  for (std::thread& thread : threads)
    thread.join();
  return said;
}

using Said = std::vector<std::string>;

Bytes numbers(std::size_t count, int from) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(from));
  return bytes;
}

/// Sends and receives in a group, with sizes that depend on the member.
std::string exchange_with_all(End& end, int self) {
  const std::vector<std::size_t> sizes{0, 300'000, 1};
  const std::size_t own = sizes[static_cast<std::size_t>(self)];
  std::vector<Bytes> sent, received(sizes.size(), Bytes(own));
  for (const std::size_t size : sizes)
    sent.push_back(numbers(size, self));
  ncclGroupStart();
  for (std::size_t other = 0; other < sizes.size(); ++other)
    if (static_cast<int>(other) != self) {
      end.send(sent[other], static_cast<int>(other));
      end.receive(received[other], static_cast<int>(other));
    }
  ncclGroupEnd();
  end.stream.finish();
  int right = 0;
  for (std::size_t other = 0; other < sizes.size(); ++other)
    right +=
        static_cast<int>(other) != self && received[other] == numbers(own, static_cast<int>(other));
  return std::to_string(right) + " right, " + end.end();
}

TEST_CASE("Sent data arrive in any size, and all of a group at once", "[standin]") {
  const auto of = [](int self) {
    return [self](End& end) { return exchange_with_all(end, self); };
  };
  CHECK(said_by({of(0), of(1), of(2)}) == Said(3, "2 right, no error"));
}

TEST_CASE("Data arrive between processes", "[standin]") {
  const ncclUniqueId id = new_id();
  pipewright::test::Child other([&](int descriptor) {
    End end(id, 2, 1);
    Bytes bytes(100'000);
    end.receive(bytes, 0);
    end.stream.finish();
    end.send(bytes, 0);
    const std::string ended = end.end();
    if (::write(descriptor, ended.data(), ended.size()) < 0)
      std::abort();
  });
  End end(id, 2, 0);
  Bytes back(100'000);
  end.send(numbers(100'000, 5), 1);
  end.receive(back, 1);
  end.stream.finish();
  CHECK((back == numbers(100'000, 5)));  // too many to print
  CHECK(end.end() == "no error");
  CHECK(other.finish() == "no error");
}

TEST_CASE("Ends that disagree report the difference", "[standin]") {
  CHECK(said_by({[](End& end) {
                   end.send(numbers(4, 1), 1);
                   end.stream.finish();
                   return end.error();
                 },
                 [](End& end) {
                   Bytes eight(8);
                   end.receive(eight, 0);
                   const std::string error = end.await_error();
                   end.abort();
                   return error;
                 }}) ==
        Said{"no error",
             "invalid usage: receive 1 of rank 1 from rank 0 is of 8 bytes, and the send there of "
             "4"});
  CHECK(said_by({[](End& end) {
                   end.send(numbers(4, 1), 1);
                   end.end();
                   return "sent";
                 },
                 [](End& end) { return end.end(); }}) == Said{"sent", "invalid usage"});
}

TEST_CASE("An abort drops data that were not received, a finalize does not", "[standin]") {
  std::atomic<bool> gone = false;
  CHECK(said_by({[&](End& end) {
                   end.send(numbers(8, 1), 1);
                   end.stream.finish();
                   end.abort();
                   gone = true;
                   return "aborted";
                 },
                 [&](End& end) {
                   while (!gone)
                     std::this_thread::yield();
                   Bytes bytes(8);
                   end.receive(bytes, 0);
                   const std::string error = end.await_error();
                   end.abort();
                   return error;
                 }}) == Said{"aborted",
                             "remote process exited or there was a network error: receive 1 of "
                             "rank 1 from rank 0: rank 0 has aborted"});
  std::atomic<bool> sent = false;
  CHECK(said_by({[&](End& end) {
                   end.send(numbers(8, 1), 1);
                   end.stream.finish();
                   sent = true;
                   return end.end();
                 },
                 [&](End& end) {
                   while (!sent)
                     std::this_thread::yield();
                   Bytes bytes(8);
                   end.receive(bytes, 0);
                   end.stream.finish();
                   return end.end() + (bytes == numbers(8, 1) ? ", it came" : "");
                 }}) == Said{"no error", "no error, it came"});
}

TEST_CASE("Injected hangs and errors last until the abort", "[standin]") {
  ::setenv("PIPEWRIGHT_STANDIN_NCCL", "hang=1:1;error=0:1", 1);
  std::atomic<bool> received = false;
  CHECK(said_by({[&](End& end) {
                   const Bytes bytes(8);
                   end.send(bytes, 1);
                   while (!received)
                     std::this_thread::yield();
                   const std::string before = end.error();
                   end.send(bytes, 1);
                   const std::string error = end.await_error();
                   end.abort();
                   return before + "; " + error;
                 },
                 [&](End& end) {
                   Bytes bytes(8);
                   end.receive(bytes, 0);
                   end.stream.finish();
                   received = true;
                   end.receive(bytes, 0);
                   const std::string error = end.error();
                   end.abort();
                   return error;
                 }}) == Said{"no error; remote process exited or there was a network error: an "
                             "error of rank 0 on purpose",
                             "no error"});
  ::unsetenv("PIPEWRIGHT_STANDIN_NCCL");
}

/// Returns the result of the first of two members on the same GPU; the other one is in another
/// process.
std::string both_on_one_gpu(const char* host_of_other) {
  const ncclUniqueId id = new_id();
  const auto join = [&](int rank) {
    device = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, 2, id, rank);
    return result == ncclSuccess ? "joined" : std::string(ncclGetLastError(nullptr));
  };
  pipewright::test::Child other([&](int) {
    if (host_of_other != nullptr)
      ::setenv("NCCL_HOSTID", host_of_other, 1);
    join(1);
  });
  const std::string said = join(0);
  other.finish();
  return said;
}

TEST_CASE("Two members on one GPU are rejected unless their host names differ", "[standin]") {
  CHECK(both_on_one_gpu(nullptr) ==
        "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 0");
  CHECK(both_on_one_gpu("another") == "joined");
}

TEST_CASE("The memory that a stream will read and write is reported", "[standin]") {
  CHECK(said_by({[](End& end) {
                   end.send(numbers(8, 1), 1);
                   end.stream.finish();
                   end.end();
                   return end.stream.accesses.at(0);
                 },
                 [](End& end) {
                   Bytes bytes(8);
                   end.receive(bytes, 0);
                   end.stream.finish();
                   end.end();
                   return end.stream.accesses.at(0);
                 }}) == Said{"ncclSend reads 8", "ncclRecv writes 8"});
}

}  // namespace standin_nccl_test

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = standin_nccl_test::device;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* data) {
  reinterpret_cast<standin_nccl_test::Stream*>(stream)->give([work, data] { work(data); });
  return cudaSuccess;
}

void pipewright_standin_access(void* stream, const void*, std::size_t bytes, int writes,
                               const char* what) {
  static_cast<standin_nccl_test::Stream*>(stream)->accesses.push_back(
      std::string(what) + (writes != 0 ? " writes " : " reads ") + std::to_string(bytes));
}

}  // extern "C"
