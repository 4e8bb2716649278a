#include "gloo_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "job/crypto.hpp"
#include "job/no_timeout.hpp"
#include "job/watch.hpp"
#include "network.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {
namespace {

// Uses only c10d's declarations: installed Gloo headers may not match LibTorch's Gloo.
using c10d::ProcessGroupGloo;

/// Removes the position in Gloo's sources at the start, "[…/pair.cc:534] ", and the stack trace at
/// the end.
std::string message_of(const std::exception& error) {
  const std::string text = error.what();
  const auto begin = text.starts_with('[') ? text.find("] ") + 2 : 0;
  return text.substr(begin, text.find('\n') - begin);
}

/// Uses the interface that GLOO_SOCKET_IFNAME names, or else the one that leads to the job's store.
c10::intrusive_ptr<ProcessGroupGloo::Options> options_for(const JobEnvironment& job) {
  if (std::getenv("GLOO_SOCKET_IFNAME") != nullptr)
    return ProcessGroupGloo::Options::create_default(no_timeout);
  auto options = ProcessGroupGloo::Options::create(no_timeout);
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname(
      local_address_towards(job.address, job.port), false));
  return options;
}

/// The proof with which one side of a connection authenticates itself to the other. `a` and `b` are
/// ranks; `of_a` and `of_b` are their random numbers for this mesh.
struct Introduction {
  std::string secret, mesh;

  std::string proof(int a, int b, const std::string& of_a, const std::string& of_b) const {
    return hmac_sha256(secret, fmt::format("mesh {} {} {} ", mesh, a, b) + of_a + of_b);
  }
};

/// Exchanges a text of `length` bytes with every other rank. `words(rank)` is the text for a rank;
/// returns the texts received.
template <class Words>
std::vector<std::string> told_by_all(ProcessGroupGloo& group, const JobEnvironment& job,
                                     std::size_t length, std::chrono::milliseconds timeout,
                                     const Words& words) {
  constexpr int tag = 0;
  const auto count = static_cast<std::int64_t>(length);
  std::vector<c10::intrusive_ptr<c10d::Work>> under_way;
  std::vector<at::Tensor> received;
  for (int other = 0; other < job.size; ++other) {
    received.push_back(at::zeros({count}, at::kByte));
    if (other == job.rank)
      continue;
    const std::string own = words(other);
    std::vector<at::Tensor> sent{at::zeros({count}, at::kByte)};
    std::copy(own.begin(), own.end(), static_cast<char*>(sent.front().data_ptr()));
    under_way.push_back(group.send(sent, other, tag));
    std::vector<at::Tensor> taken{received.back()};
    under_way.push_back(group.recv(taken, other, tag));
  }
  for (const auto& work : under_way)
    work->wait(timeout);
  std::vector<std::string> texts;
  for (const at::Tensor& bytes : received)
    texts.emplace_back(static_cast<const char*>(bytes.const_data_ptr()), length);
  return texts;
}

/// Authenticates all connections. Gloo accepts any process that connects to a rank's port while the
/// rank waits for another. If the job has a secret, both ends of every connection prove that they
/// know it, and which ranks they are, before anything else is sent.
void introduce(ProcessGroupGloo& group, const JobEnvironment& job, const std::string& name,
               std::chrono::milliseconds timeout) {
  constexpr std::size_t drawn = 16, proven = 32;
  const Introduction introduction{job.secret, name};
  const std::string own = random_bytes(drawn);
  const auto theirs = told_by_all(group, job, drawn, timeout, [&](int) { return own; });
  const auto of = [&](int rank) { return theirs[static_cast<std::size_t>(rank)]; };
  const auto proofs = told_by_all(group, job, proven, timeout, [&](int other) {
    return introduction.proof(job.rank, other, own, of(other));
  });
  for (int other = 0; other < job.size; ++other)
    if (other != job.rank &&
        !equal_in_constant_time(proofs[static_cast<std::size_t>(other)],
                                introduction.proof(other, job.rank, of(other), own)))
      throw JobFailure(fmt::format(
          "rank {}: the process that connected as rank {} does not know the job's secret", job.rank,
          other));
}

/// Returns once every rank is connected to every other. Otherwise a rank that leaves at once could
/// close connections while another still makes its own, and that rank would report it as lost.
void await_all(ProcessGroupGloo& group, const JobEnvironment& job,
               std::chrono::milliseconds timeout) {
  told_by_all(group, job, /*length=*/1, timeout, [](int) { return std::string(1, '\0'); });
}

}  // namespace

struct GlooMesh::State {
  explicit State(Watch& watch_) : watch(watch_) {}

  Watch& watch;
  c10::intrusive_ptr<ProcessGroupGloo> group;
  std::mutex posting;  // the process group counts its operations without a lock
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
  // The thread owns all that it uses, because it may have to be abandoned.
  const auto made = std::make_shared<c10::intrusive_ptr<ProcessGroupGloo>>();
  const auto store = job.watch().store(name);
  job.watch().run_interruptibly(
      "the setup of connections", [made, store, arrivals, name, environment = job.environment(),
                                   timeout = job.options().join_timeout] {
        // Gloo's own threads get ordinary time slices: a rank that they interrupt within a call to
        // Gloo holds a lock for which they would spin.
        pin_beside(environment.rank, environment.size);
        if (arrivals == Arrivals::Wait)
          interrupt_nobody();
        *made = c10::make_intrusive<ProcessGroupGloo>(store, environment.rank, environment.size,
                                                      options_for(environment));
        if (environment.secret.empty())
          await_all(**made, environment, timeout);
        else
          introduce(**made, environment, name, timeout);
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
