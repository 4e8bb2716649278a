#include "gloo_mesh.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "job/no_timeout.hpp"
#include "job/watch.hpp"
#include "network.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {
namespace {

// Its own functions only: the headers of Gloo that are installed need not be those of the library.
using c10d::ProcessGroupGloo;

/// Without the place in Gloo's sources before it, "[…/pair.cc:534] ", and the stack trace after it.
std::string message_of(const std::exception& error) {
  const std::string text = error.what();
  const auto begin = text.starts_with('[') ? text.find("] ") + 2 : 0;
  return text.substr(begin, text.find('\n') - begin);
}

/// On the interface that GLOO_SOCKET_IFNAME names, or else the one that leads to the job's store.
c10::intrusive_ptr<ProcessGroupGloo::Options> options_for(const JobEnvironment& job) {
  if (std::getenv("GLOO_SOCKET_IFNAME") != nullptr)
    return ProcessGroupGloo::Options::create_default(no_timeout);
  auto options = ProcessGroupGloo::Options::create(no_timeout);
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname(
      local_address_towards(job.address, job.port), false));
  return options;
}

}  // namespace

struct GlooMesh::State {
  explicit State(Watch& watch_) : watch(watch_) {}

  Watch& watch;
  c10::intrusive_ptr<ProcessGroupGloo> group;
  std::mutex posting;  // the group counts its operations without a lock
  std::atomic<std::int64_t> sent{0};
  std::mutex mutex;
  std::set<c10d::Work*> waited_for;
  bool ended = false;
  std::string why;

  template <class Post>
  Operation post(int peer, const Post& operation) {
    try {
      const std::lock_guard lock(posting);
      return {operation(), peer};
    } catch (const std::exception& error) {
      watch.lost(peer, message_of(error));
    }
  }
};

GlooMesh::GlooMesh(Job& job, const std::string& name, Arrivals arrivals)
    : state_(std::make_unique<State>(job.watch())) {
  // What the thread uses is its own: it may have to be left behind.
  const auto made = std::make_shared<c10::intrusive_ptr<ProcessGroupGloo>>();
  const auto store = job.watch().store(name);
  job.watch().run_interruptibly(
      "the making of connections", [made, store, arrivals, environment = job.environment()] {
        // Gloo's own threads, in ordinary slices: a rank that they interrupt in the middle of a
        // call to Gloo holds a lock that they would spin for.
        pin_beside(environment.rank, environment.size);
        if (arrivals == Arrivals::Wait)
          interrupt_nobody();
        *made = c10::make_intrusive<ProcessGroupGloo>(store, environment.rank, environment.size,
                                                      options_for(environment));
      });
  state_->group = *made;
}

GlooMesh::~GlooMesh() = default;

GlooMesh::Operation GlooMesh::send(at::Tensor bytes, int to, int tag) {
  state_->sent.fetch_add(static_cast<std::int64_t>(bytes.nbytes()), std::memory_order_relaxed);
  std::vector<at::Tensor> tensors{std::move(bytes)};
  return state_->post(to, [&] { return state_->group->send(tensors, to, tag); });
}

GlooMesh::Operation GlooMesh::receive(at::Tensor bytes, int from, int tag) {
  std::vector<at::Tensor> tensors{std::move(bytes)};
  return state_->post(from, [&] { return state_->group->recv(tensors, from, tag); });
}

void GlooMesh::wait(const Operation& operation) {
  if (const std::string error = wait_or_end(operation); !error.empty())
    state_->watch.lost(operation.peer, error);
}

std::string GlooMesh::wait_or_end(const Operation& operation) {
  c10d::Work* const work = operation.work.get();
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->ended)
      throw Aborted(state_->why);
    state_->waited_for.insert(work);
  }
  bool done = false;
  std::string error;
  try {
    done = work->wait(no_timeout);
  } catch (const std::exception& failed) {
    error = message_of(failed);
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->waited_for.erase(work);
    if (state_->ended)
      throw Aborted(state_->why);
  }
  return done ? "" : error.empty() ? "its connection has ended" : error;
}

plan::Bytes GlooMesh::sent() const { return {state_->sent.load(std::memory_order_relaxed)}; }

void GlooMesh::end(const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  if (state_->ended)
    return;
  state_->ended = true;
  state_->why = why;
  for (c10d::Work* const work : state_->waited_for)
    work->abort();
}

}  // namespace pipewright::exec
