#include "pipewright/exec/gpu/nccl_transport.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "cpu/unpinned_thread.hpp"
#include "job/watch.hpp"
#include "nccl_communicator.hpp"
#include "nccl_host.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "transport/lifeline.hpp"
#include "transport/sent_forms.hpp"

namespace pipewright::exec {
namespace {

/// Returns the tensors that NCCL moves: those that lie on the GPU and are not empty.
Tensors on_gpu(const Tensors& tensors) {
  Tensors some;
  for (const at::Tensor& tensor : tensors)
    if (has_bytes(tensor) && !tensor.is_cpu())
      some.push_back(tensor);
  return some;
}

Tensors values_on_gpu(const Tensors& tensors) {
  Tensors values;
  for (const at::Tensor& tensor : on_gpu(tensors))
    values.push_back(values_of(tensor));
  return values;
}

bool any_on_gpu(const TensorForms& forms) {
  return std::any_of(forms.begin(), forms.end(),
                     [](const TensorForm& form) { return !form.on_cpu; });
}

bool is_on_host(const TensorForm& form) { return form.defined && form.on_cpu; }

bool any_on_host(const TensorForms& forms) {
  return std::any_of(forms.begin(), forms.end(), is_on_host);
}

void add_on_host(const Tensors& tensors, Tensors& told) {
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.is_cpu())
      told.push_back(tensor);
}

/// Puts the CPU tensors, which begin at `told[next]`, into their places in `tensors`.
void lay_on_host(const TensorForms& forms, const Tensors& told, std::size_t next,
                 Tensors& tensors) {
  for (std::size_t t = 0; t < forms.size(); ++t)
    if (is_on_host(forms[t]))
      tensors[t] = told.at(next++);
}

at::Tensor words_of(const TensorForms& forms) { return at::tensor(to_words(forms), at::kLong); }

TensorForms forms_told(const Tensors& told) {
  const at::Tensor& words = told.front();
  const auto* const first = words.const_data_ptr<std::int64_t>();
  return forms_from_words({first, first + words.numel()});
}

/// One in-order queue of transfers, and its receives that have been posted but not submitted,
/// because their shapes are not known yet.
struct Queue {
  std::unique_ptr<NcclCommunicator> communicator;
  std::deque<Transfer> waiting;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(Job& job, at::Device device, TransferOptions options)
      : job_(job),
        device_(device),
        options_(options),
        lifeline_(job),
        host_(make_gloo_transport(job, {.communicators = plan::CommunicatorLayout::Pair,
                                        .wait_until_taken = options.wait_until_taken})),
        exceptions_(std::uncaught_exceptions()) {
    host_->expect(job_.rank(), {}, Shapes::Varying);
    agree_on_hosts(job_, *host_, device_);
    listener_ = job_.watch().on_failure([this](const std::string&) { end(); });
    asking_ = unpinned_thread([this] { ask_for_errors(); });
  }

  ~NcclTransport() override {
    if (std::uncaught_exceptions() > exceptions_)
      job_.abort(fmt::format("rank {} has ended early", job_.rank()));
    try {
      end_in_order();
    } catch (const Aborted&) {
      // The job has failed, and another rank reports it.
    } catch (const std::exception& error) {
      job_.abort(fmt::format("rank {}: {}", job_.rank(), error.what()));
    }
    closing_.set_value();
    asking_.join();
    job_.watch().forget(listener_);
    end();
  }

  /// Makes the missing communicators. Their members must create each of them together, so all ranks
  /// create them in the same order and none waits for a rank that waits for it.
  void expect(int /*rank*/, const std::vector<Transfer>& transfers, Shapes shapes) override {
    shapes_ = shapes;
    sent_forms_.begin_pass();
    known_.clear();
    std::set<Members> missing;
    const auto need = [&](const Members& members) {
      if (!queues_.contains(members))
        missing.insert(members);
    };
    if (options_.communicators == plan::CommunicatorLayout::Rank)
      need(members_of({}));
    for (const Transfer& transfer : transfers)
      need(members_of(transfer));
    for (const Members& members : missing) {
      auto sorted = members;
      std::sort(sorted.begin(), sorted.end());
      auto communicator = connect(fmt::format("transfers {}", fmt::join(members, ">")), sorted);
      const std::lock_guard lock(mutex_);
      queues_[members].communicator = std::move(communicator);
    }
  }

  void post(const Transfer& transfer) override {
    Queue& queue = queue_of(transfer);
    queue.waiting.push_back(transfer);
    if (shapes_ == Shapes::Fixed)
      while (!queue.waiting.empty() && known_.contains(route_of(queue.waiting.front())))
        submit_next(queue);
  }

  void send(const Transfer& transfer, Tensors tensors) override {
    require_going();
    Queue& queue = queue_of(transfer);
    // If both directions share a queue, receives posted earlier go first.
    while (!queue.waiting.empty())
      submit_next(queue);
    const TensorForms forms = forms_of(tensors);
    Tensors told;
    if (shapes_ == Shapes::Varying || sent_forms_.before_news(transfer, forms))
      told.push_back(words_of(forms));
    add_on_host(tensors, told);
    if (!told.empty())
      host_->send(transfer, std::move(told));
    queue.communicator->move({{values_on_gpu(tensors), transfer.to}}, {});
    if (options_.wait_until_taken) {
      const Watch::Waiting waiting(job_.watch(), {transfer.to}, to_string(transfer.instruction));
      const Stream& stream = queue.communicator->stream();
      Transport::wait_for_device([&] { return stream.is_done(); }, "");
    }
  }

  Tensors receive(const Transfer& transfer) override {
    require_going();
    const auto key = key_of(transfer.instruction);
    Queue& queue = queue_of(transfer);
    while (!submitted_.contains(key) && !queue.waiting.empty())
      submit_next(queue);
    Submitted found = std::move(submitted_.extract(key).mapped());
    if (!found.host_is_there)
      lay_on_host(found.forms, host_->receive(transfer), 0, found.tensors);
    Tensors tensors = adopt(std::move(found.tensors), found.there);
    set_requires_grad(tensors, found.forms);
    return tensors;
  }

  /// Sends CPU tensors and the forms of all tensors over Gloo, then the GPU tensors over NCCL.
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    require_going();
    // All members must agree whether a communicator is needed, even those without GPU tensors.
    const bool mine_on_gpu = std::any_of(
        parts.begin(), parts.end(), [](const Tensors& part) { return any_on_gpu(forms_of(part)); });
    std::vector<Tensors> host;
    for (const Tensors& part : parts) {
      Tensors& told = host.emplace_back();
      told.push_back(words_of(forms_of(part)));
      add_on_host(part, told);
      told.push_back(at::full({1}, mine_on_gpu, at::kLong));
    }
    const auto told = host_->all_to_all(group, rank, host, lane);
    const bool on_gpu_anywhere = std::any_of(told.begin(), told.end(), [](const Tensors& theirs) {
      return theirs.back().item<std::int64_t>() != 0;
    });
    NcclCommunicator* const communicator =
        on_gpu_anywhere ? &communicator_of({lane, group}) : nullptr;
    std::vector<Tensors> all;
    std::vector<NcclCommunicator::Incoming> incoming;
    std::vector<NcclCommunicator::Outgoing> outgoing;
    for (std::size_t m = 0; m < group.size(); ++m) {
      if (group[m] == rank) {
        all.push_back(parts[m]);
        continue;
      }
      all.push_back(assemble(told[m], forms_told(told[m]), communicator));
      incoming.push_back({on_gpu(all.back()), group[m]});
      outgoing.push_back({values_on_gpu(parts[m]), group[m]});
    }
    if (communicator == nullptr)
      return all;
    const Event there = communicator->move(outgoing, incoming);
    for (std::size_t m = 0; m < all.size(); ++m)
      if (group[m] != rank)
        all[m] = adopt(std::move(all[m]), there);
    // A rank that reads these tensors waits until the others have read theirs, on the device too.
    there.wait();
    return all;
  }

  void require_going() override { job_.require_going(); }

  void wait_for_device(const std::function<bool()>& done, const std::string& where) override {
    const Watch::Waiting waiting(job_.watch(), {}, where);
    Transport::wait_for_device(done, where);
  }

  void abort(const std::string& why) override { job_.abort(why); }

 private:
  /// Ranks in ascending order; for CommunicatorLayout::Edge, sender and receiver.
  using Members = std::vector<int>;
  using Group = std::pair<Lane, Members>;
  struct Submitted {
    Tensors tensors;
    TensorForms forms;
    Event there;                // the GPU tensors have arrived
    bool host_is_there = true;  // the CPU tensors have arrived
  };
  struct Slot {
    std::mutex making;
    std::unique_ptr<NcclCommunicator> communicator;
  };

  std::unique_ptr<NcclCommunicator> connect(const std::string& name, const Members& members) {
    return std::make_unique<NcclCommunicator>(job_, name, members, device_);
  }

  Members members_of(const Transfer& transfer) const {
    if (options_.communicators == plan::CommunicatorLayout::Edge)
      return {transfer.from, transfer.to};
    if (options_.communicators == plan::CommunicatorLayout::Pair)
      return {std::min(transfer.from, transfer.to), std::max(transfer.from, transfer.to)};
    Members everybody;
    for (int rank = 0; rank < job_.size(); ++rank)
      everybody.push_back(rank);
    return everybody;
  }
  Queue& queue_of(const Transfer& transfer) { return queues_.at(members_of(transfer)); }

  static Route route_of(const Transfer& transfer) {
    const plan::Instruction receive = receiving_end(transfer.instruction);
    return {receive.kind, receive.stage, transfer.from};
  }
  /// Submits the oldest posted receive. Waits for the sender's message with the forms if these are
  /// not known.
  void submit_next(Queue& queue) {
    const Transfer transfer = queue.waiting.front();
    queue.waiting.pop_front();
    const auto known = known_.find(route_of(transfer));
    const bool is_news = shapes_ == Shapes::Varying || known == known_.end();
    const Tensors told = is_news ? host_->receive(transfer) : Tensors{};
    TensorForms forms = is_news ? forms_told(told) : known->second;
    if (is_news)
      known_[route_of(transfer)] = forms;
    Tensors tensors;
    {
      const OnStream stream(queue.communicator->stream());
      tensors = tensors_like(forms, device_);
    }
    if (is_news)
      lay_on_host(forms, told, 1, tensors);
    const Event there = queue.communicator->move({}, {{on_gpu(tensors), transfer.from}});
    const bool host_is_there = is_news || !any_on_host(forms);
    submitted_[key_of(transfer.instruction)] = {std::move(tensors), std::move(forms), there,
                                                host_is_there};
  }

  /// Returns the tensors that a member sends: the CPU tensors from `told`, and buffers for the
  /// tensors that come from its GPU over `communicator`, if any.
  Tensors assemble(const Tensors& told, const TensorForms& forms,
                   const NcclCommunicator* communicator) const {
    Tensors tensors;
    {
      const OnStream stream(communicator == nullptr ? OnStream::current() : communicator->stream());
      tensors = tensors_like(forms, device_);
    }
    lay_on_host(forms, told, 1, tensors);
    return tensors;
  }

  /// Creates a group's communicator at the first collective of its members, which several threads
  /// may call.
  NcclCommunicator& communicator_of(const Group& group) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      auto& place = groups_[group];
      if (!place)
        place = std::make_unique<Slot>();
      slot = place.get();
    }
    const std::lock_guard making(slot->making);
    if (!slot->communicator) {
      auto made = connect(fmt::format("{} {}", group.first == Lane::Compute ? "shards" : "group",
                                      fmt::join(group.second, ",")),
                          group.second);
      const std::lock_guard lock(mutex_);
      slot->communicator = std::move(made);
    }
    return *slot->communicator;
  }

  /// Returns all communicators, in an order that is the same on all ranks.
  std::vector<NcclCommunicator*> communicators() {
    const std::lock_guard lock(mutex_);
    std::vector<NcclCommunicator*> all;
    for (const auto& [members, queue] : queues_)
      if (queue.communicator)
        all.push_back(queue.communicator.get());
    for (const auto& [members, slot] : groups_)
      if (slot->communicator)
        all.push_back(slot->communicator.get());
    return all;
  }

  /// Polls NCCL for asynchronous errors, which it reports only when asked. A rank's thread may
  /// never get to ask: it may be blocked in a device call that waits for the transfer.
  void ask_for_errors() {
    const auto closing = closing_.get_future();
    while (closing.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout) {
      const std::string failure = failure_of_nccl();
      if (failure.empty())
        continue;
      try {
        job_.watch().await_cause();  // a lost rank may be the cause
        job_.abort(fmt::format("rank {}: {}", job_.rank(), failure));
      } catch (const Aborted&) {
        // The cause has been reported.
      }
      return;
    }
  }

  std::string failure_of_nccl() {
    for (const NcclCommunicator* const each : communicators())
      if (std::string failure = each->failure(); !failure.empty())
        return failure;
    return "";
  }

  /// Closes all communicators. All ranks meet first, because the last data that a rank has sent may
  /// still be on its way.
  void end_in_order() {
    job_.require_going();
    for (NcclCommunicator* const each : communicators())
      wait_for_device([each] { return each->stream().is_done(); }, "the last transfers");
    std::vector<int> everybody(static_cast<std::size_t>(job_.size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    host_->all_gather(everybody, job_.rank(), {});
    for (NcclCommunicator* const each : communicators())
      each->close();
  }

  void end() {
    for (NcclCommunicator* const each : communicators())
      each->abort();
  }

  Job& job_;
  at::Device device_;
  TransferOptions options_;
  Shapes shapes_ = Shapes::Fixed;  // of the current pass
  Lifeline lifeline_;
  const std::unique_ptr<Transport> host_;  // moves CPU tensors, and the forms of all tensors
  const int exceptions_;                   // uncaught exceptions when this was constructed
  int listener_ = 0;
  std::promise<void> closing_;
  std::thread asking_;

  SentForms sent_forms_;
  std::map<Route, TensorForms> known_;  // in the current pass
  std::map<plan::InstructionKey, Submitted> submitted_;
  std::mutex mutex_;  // guards what `communicators` reads
  std::map<Members, Queue> queues_;
  std::map<Group, std::unique_ptr<Slot>> groups_;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(Job& job, at::Device device,
                                               TransferOptions options) {
  return std::make_unique<NcclTransport>(job, device, options);
}

}  // namespace pipewright::exec
