#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "pipewright/exec/rank/memory_meter.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// All that comes from one peer: fetched in the order of the Program by a thread of its own, some
/// transfers ahead of what has been asked for, so that the peer need not wait for our compute.
class ReceiveThread {
 public:
  /// Waits for the tensors of a transfer. Throws Aborted.
  using Fetch = std::function<Tensors(const Transfer&)>;

  /// `ahead`: how many transfers are fetched before they are asked for.
  ReceiveThread(int ahead, Fetch fetch);
  /// The job or its mesh must have been ended, which ends `fetch`, and this thread.
  ~ReceiveThread();

  void expect(const Transfer& transfer);
  /// What a transfer brings, if it has come already. Throws Aborted.
  std::optional<Tensors> take_if_there(const Transfer& transfer);
  /// Waits for it: asleep, as looking for it would take a core from other ranks. Throws Aborted.
  Tensors take(const Transfer& transfer);

  /// Ends every wait, now and later.
  void end(const std::string& why);

 private:
  void fetch_until_ended();
  void add(const Transfer& transfer);
  void ask_for(const Transfer& transfer);
  bool settled(const plan::InstructionKey& key) const { return ended_ || letters_.contains(key); }
  Tensors taken(const plan::InstructionKey& key);

  const int ahead_;
  const Fetch fetch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Transfer> expected_;               // not yet begun
  std::map<plan::InstructionKey, int> places_;  // among all ever expected, until taken
  int expected_ever_ = 0;
  int begun_ = 0;
  int allowed_;  // how many may begin
  std::map<plan::InstructionKey, Tensors> letters_;
  AccountEntry* account_ = nullptr;  // of the rank's thread: what is fetched is charged to it
  bool ended_ = false;
  std::string why_;
  std::thread thread_;
};

}  // namespace pipewright::exec
