#include "communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "faults.hpp"

namespace pipewright::standin {
namespace {

std::string host() {
  if (const char* const own = std::getenv("NCCL_HOSTID"))
    return own;
  char name[128] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

template <std::size_t size>
void put(char (&place)[size], const std::string& text) {
  std::memcpy(place, text.c_str(), std::min(text.size() + 1, size - 1));
}

std::string in_words(const Operation& operation, int rank) {
  return operation.is_send
             ? fmt::format("send {} of rank {} to rank {}", operation.number, rank, operation.peer)
             : fmt::format("receive {} of rank {} from rank {}", operation.number, rank,
                           operation.peer);
}

}  // namespace

Communicator::Communicator(const std::string& path, int size, int rank, std::string device)
    : exchange_(path, size), rank_(rank) {
  const auto all_are_here = [&] {
    const Exchange::Lock lock(exchange_);
    for (int other = 0; other < size; ++other)
      if (!exchange_.member(other).here)
        return false;
    exchange_.forget_name();
    return true;
  };
  {
    const Exchange::Lock lock(exchange_);
    Member& own = exchange_.member(rank);
    put(own.host, host());
    put(own.device, device);
    own.here = true;
  }
  exchange_.changed();
  for (auto seen = exchange_.changes(); !all_are_here(); seen = exchange_.changes())
    exchange_.wait(seen);
  const Exchange::Lock lock(exchange_);
  const Member& own = exchange_.member(rank);
  for (int other = 0; other < size && !device.empty(); ++other)
    if (const Member& theirs = exchange_.member(other); other != rank &&
                                                        std::strcmp(own.host, theirs.host) == 0 &&
                                                        std::strcmp(own.device, theirs.device) == 0)
      throw std::runtime_error(
          fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}", rank,
                      other, device));
}

Communicator::~Communicator() = default;

std::string Communicator::words() const {
  const std::lock_guard lock(mutex_);
  return words_;
}

void Communicator::fail(ncclResult_t error, const std::string& words) {
  const std::lock_guard lock(mutex_);
  if (error_ != ncclSuccess)
    return;
  std::fprintf(stderr, "stand-in for NCCL: %s\n", words.c_str());
  words_ = words;
  error_ = error;
}

/// Moves as many bytes as possible now. Returns true if any moved. Requires the exchange's lock.
bool Communicator::advance(Operation& operation) {
  Lane& lane = operation.is_send ? exchange_.lane(rank_, operation.peer)
                                 : exchange_.lane(operation.peer, rank_);
  if (operation.number == 0) {
    operation.number = operation.is_send ? ++lane.sends : ++lane.receives;
    operation.head = operation.bytes;
  }
  auto* const head = reinterpret_cast<std::byte*>(&operation.head) + operation.head_moved;
  const std::size_t head_left = sizeof operation.head - operation.head_moved;
  std::size_t moved = operation.is_send ? lane.write(head, head_left) : lane.take(head, head_left);
  operation.head_moved += moved;
  if (operation.head_moved < sizeof operation.head) {
    if (exchange_.member(operation.peer).aborted)
      fail(ncclRemoteError,
           fmt::format("{}: rank {} has aborted", in_words(operation, rank_), operation.peer));
    return moved > 0;
  }
  if (operation.head != operation.bytes) {
    fail(ncclInvalidUsage,
         fmt::format("{} is of {} bytes, and the send there of {}", in_words(operation, rank_),
                     operation.bytes, operation.head));
    return false;
  }
  std::byte* const place = operation.memory + operation.moved;
  const std::size_t left = operation.bytes - operation.moved;
  const std::size_t some = operation.is_send ? lane.write(place, left) : lane.take(place, left);
  operation.moved += some;
  if (some == 0 && left > 0 && exchange_.member(operation.peer).aborted)
    fail(ncclRemoteError,
         fmt::format("{}: rank {} has aborted", in_words(operation, rank_), operation.peer));
  return moved + some > 0;
}

void Communicator::run(std::vector<Operation> operations) {
  const Fault fault = fault_at(rank_, operations_++);
  if (fault == Fault::Error)
    fail(ncclRemoteError, fmt::format("an error of rank {} on purpose", rank_));
  const auto is_over = [](const Operation& each) { return each.is_over(); };
  // Operations with the same peer and direction run one after the other.
  const auto is_next = [&](std::size_t o) {
    return std::none_of(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(o),
                        [&](const Operation& before) {
                          return before.peer == operations[o].peer &&
                                 before.is_send == operations[o].is_send && !before.is_over();
                        });
  };
  while (!aborted_) {
    const auto seen = exchange_.changes();
    bool moved = false;
    if (fault == Fault::None && error_ == ncclSuccess) {
      const Exchange::Lock lock(exchange_);
      for (std::size_t o = 0; o < operations.size(); ++o)
        if (!operations[o].is_over() && is_next(o) && !aborted_ && error_ == ncclSuccess)
          moved = advance(operations[o]) || moved;
    }
    if (moved)
      exchange_.changed();
    if (fault == Fault::None && std::all_of(operations.begin(), operations.end(), is_over))
      break;
    if (!moved)
      exchange_.wait(seen);
  }
  for (const Operation& each : operations)
    if (!each.is_over())
      std::fprintf(stderr, "stand-in for NCCL: %s is dropped: %zu of its %zu bytes have moved\n",
                   in_words(each, rank_).c_str(), each.moved, each.bytes);
  --under_way_;
  exchange_.changed();
}

void Communicator::abort() {
  aborted_ = true;
  {
    const Exchange::Lock lock(exchange_);
    exchange_.member(rank_).aborted = true;
    for (int other = 0; other < size(); ++other) {
      Lane& lane = exchange_.lane(rank_, other);
      if (!lane.is_empty())
        std::fprintf(stderr,
                     "stand-in for NCCL: rank %d aborts: %zu bytes for rank %d are dropped\n",
                     rank_, static_cast<std::size_t>(lane.written - lane.read), other);
      lane.read = lane.written;
    }
  }
  exchange_.changed();
}

ncclResult_t Communicator::finalize() {
  if (finalized_.exchange(true))
    return ncclSuccess;
  const auto all_have_finished = [&] {
    const Exchange::Lock lock(exchange_);
    if (under_way_ == 0)
      exchange_.member(rank_).finished = true;
    for (int other = 0; other < size(); ++other)
      if (!exchange_.member(other).finished)
        return false;
    return true;
  };
  const auto any_has_aborted = [&] {
    const Exchange::Lock lock(exchange_);
    for (int other = 0; other < size(); ++other)
      if (exchange_.member(other).aborted)
        return true;
    return false;
  };
  auto seen = exchange_.changes();
  while (!all_have_finished()) {
    if (aborted_ || error_ != ncclSuccess)
      return error_ == ncclSuccess ? ncclInternalError : error_.load();
    if (any_has_aborted())
      fail(ncclRemoteError, fmt::format("rank {} ends, and another member has aborted", rank_));
    if (under_way_ == 0)
      exchange_.changed();
    exchange_.wait(seen);
    seen = exchange_.changes();
  }
  exchange_.changed();
  const Exchange::Lock lock(exchange_);
  for (int other = 0; other < size(); ++other)
    for (const auto& [from, to] : {std::pair(rank_, other), std::pair(other, rank_)})
      if (const Lane& lane = exchange_.lane(from, to); lane.sends != lane.receives)
        fail(ncclInvalidUsage,
             fmt::format("rank {} has sent {} times to rank {}, which has received {} times", from,
                         lane.sends, to, lane.receives));
  return error_;
}

}  // namespace pipewright::standin
