#include "streams.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "devices.hpp"

namespace standin {
namespace {

std::atomic<void (*)(const PipewrightStandinWork*)> listener{nullptr};

struct Streams {
  std::mutex mutex;
  std::deque<Stream> all;  // never freed, because they work until the process ends
  std::map<int, Stream*> of_device;
};
Streams& streams() {
  static Streams* const one = new Streams;
  return *one;
}
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> next{1};
  return next++;
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

PipewrightStandinWork named(PipewrightStandinWork::Kind kind, const char* call, const char* name) {
  PipewrightStandinWork work{};
  work.kind = kind;
  work.call = call;
  work.name = name;
  work.called_ns = now_ns();
  work.thread = static_cast<std::uint32_t>(gettid());
  return work;
}

void tell(PipewrightStandinWork work) {
  if (auto* const call = listener.load())
    call(&work);
}

void Moment::pass() {
  {
    const std::lock_guard lock(mutex);
    done = true;
    ns = now_ns();
  }
  passed.notify_all();
}

void Moment::wait() {
  std::unique_lock lock(mutex);
  passed.wait(lock, [&] { return done; });
}

bool Moment::is_done() {
  const std::lock_guard lock(mutex);
  return done;
}

Stream::Stream(int device) : device_(device), number_(next_number()) {}

void Stream::do_now(Work& work) {
  work.told.device = device_;
  work.told.stream = number_;
  work.told.start_ns = now_ns();
  if (work.task)
    work.task();
  work.told.end_ns = now_ns();
  if (work.told.call != nullptr) {
    if (work.told.returned_ns == 0)
      work.told.returned_ns = work.told.end_ns;
    tell(work.told);
  }
}

void Stream::do_queued() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !busy_ && !waiting_.empty(); });
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    do_alone(work, lock);
  }
}

void Stream::do_alone(Work& work, std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  lock.unlock();
  do_now(work);
  lock.lock();
  busy_ = false;
  changed_.notify_all();
}

void Stream::come_to(const std::vector<Access>& accesses) {
  const std::lock_guard clock(clock_mutex_);
  come_to_work(number_, clock_, accesses);
}

void Stream::queue(Work work) {
  work.told.returned_ns = now_ns();
  waiting_.push_back(std::move(work));
  if (!std::exchange(has_thread_, true))
    std::thread([this] { do_queued(); }).detach();
  changed_.notify_all();
}

void Stream::give(Work work) {
  std::unique_lock lock(mutex_);
  if (capturing_) {
    if (work.told.call != nullptr && !work.may_wait) {
      // Runs it now as well, for callers that look at its results during the capture.
      for (const Access& access : work.accesses)
        if (access.writes)
          changes_locked(const_cast<void*>(access.memory), access.bytes);
      work.task();
    }
    capturing_->works.push_back(std::move(work));
    return;
  }
  come_to(work.accesses);
  if (busy_ || !waiting_.empty() || work.may_wait) {
    queue(std::move(work));
    return;
  }
  do_alone(work, lock);
}

void Stream::perform(Work work) {
  std::unique_lock lock(mutex_);
  come_to(work.accesses);
  changed_.wait(lock, [&] { return !busy_ && waiting_.empty(); });
  do_alone(work, lock);
}

bool Stream::finish() {
  Clock done;
  {
    std::unique_lock lock(mutex_);
    if (capturing_) {
      broken_ = true;
      return false;
    }
    {
      const std::lock_guard clock(clock_mutex_);
      done = clock_;
    }
    changed_.wait(lock, [&] { return !busy_ && waiting_.empty(); });
  }
  host_has_waited(done);
  return true;
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  const bool idle = !busy_ && waiting_.empty();
  if (idle) {
    const std::lock_guard clock(clock_mutex_);
    host_has_waited(clock_);
  }
  return idle;
}

std::shared_ptr<Moment> Stream::record() {
  auto moment = std::make_shared<Moment>();
  {
    const std::lock_guard lock(mutex_);
    const std::lock_guard clock(clock_mutex_);
    moment->captured = capturing_ != nullptr;
    moment->clock = clock_;
  }
  if (!moment->captured)
    give({.task = [moment] { moment->pass(); }});
  return moment;
}

bool Stream::wait_for(const std::shared_ptr<Moment>& moment) {
  {
    const std::lock_guard lock(mutex_);
    if (moment->captured || capturing_) {
      broken_ = capturing_ && !moment->captured;
      return moment->captured && capturing_;
    }
    const std::lock_guard clock(clock_mutex_);
    merge(clock_, moment->clock);
  }
  if (!moment->is_done())
    give({.task = [moment] { moment->wait(); }, .may_wait = true});
  return true;
}

void Stream::launch(const std::shared_ptr<const Graph>& graph) {
  Work all{.told = named(PipewrightStandinWork::Kernel, "cudaGraphLaunch", "graph"),
           .task = [graph] {
             for (const Work& work : graph->works)
               if (work.task)
                 work.task();
           }};
  for (const Work& work : graph->works)
    all.accesses.insert(all.accesses.end(), work.accesses.begin(), work.accesses.end());
  give(std::move(all));
}

void Stream::comes_to(const Access& access) {
  const std::lock_guard lock(mutex_);
  if (capturing_) {
    capturing_->works.push_back({.accesses = {access}});
    return;
  }
  come_to({access});
}

void Stream::comes_to_free(const void* memory, std::size_t bytes) {
  const std::lock_guard clock(clock_mutex_);
  come_to_free(number_, clock_, memory, bytes);
}

void Stream::begin_capture() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && waiting_.empty(); });
  capturing_ = std::make_shared<Graph>();
  broken_ = false;
}

void Stream::changes(void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  changes_locked(memory, bytes);
}

void Stream::changes_locked(void* memory, std::size_t bytes) {
  const auto* const first = static_cast<const char*>(memory);
  if (bytes > 0)
    before_.emplace_back(memory, std::vector<char>(first, first + bytes));
}

bool Stream::is_captured() {
  const std::lock_guard lock(mutex_);
  return capturing_ != nullptr;
}

bool Stream::is_capture_broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

bool Stream::break_capture() {
  const std::lock_guard lock(mutex_);
  broken_ = broken_ || capturing_;
  return capturing_ != nullptr;
}

std::shared_ptr<Graph> Stream::end_capture() {
  std::unique_lock lock(mutex_);
  auto graph = std::exchange(capturing_, nullptr);
  const bool was_broken = std::exchange(broken_, false);
  for (; !before_.empty(); before_.pop_back())
    std::memcpy(before_.back().first, before_.back().second.data(), before_.back().second.size());
  lock.unlock();  // a broken graph is freed without the lock
  return was_broken ? nullptr : graph;
}

Stream& stream_of(cudaStream_t stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle > 2)
    return *reinterpret_cast<Stream*>(stream);
  const int device = current_device();
  const std::lock_guard lock(streams().mutex);
  Stream*& found = streams().of_device[device];
  if (found == nullptr)
    found = &streams().all.emplace_back(device);
  return *found;
}

cudaStream_t new_stream(int device) {
  const std::lock_guard lock(streams().mutex);
  return reinterpret_cast<cudaStream_t>(&streams().all.emplace_back(device));
}

bool finish_device(int device) {
  std::vector<Stream*> own;
  {
    const std::lock_guard lock(streams().mutex);
    for (Stream& stream : streams().all)
      if (stream.device() == device)
        own.push_back(&stream);
  }
  bool done = true;
  for (Stream* stream : own)
    done = stream->finish() && done;
  return done;
}

}  // namespace standin

void pipewright_standin_listen(void (*to)(const PipewrightStandinWork* work)) {
  standin::listener = to;
}

void pipewright_standin_access(void* stream, const void* memory, std::size_t bytes, int writes,
                               const char* what) {
  standin::stream_of(static_cast<cudaStream_t>(stream))
      .comes_to({memory, bytes, writes != 0, what});
}
