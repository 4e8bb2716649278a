#include "pipewright/exec/gpu/nccl_transport.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "job/watch.hpp"
#include "nccl_communicator.hpp"
#include "transport/gloo_collectives.hpp"
#include "transport/sent_forms.hpp"

namespace pipewright::exec {
namespace {

/// The tensors that NCCL moves: those that lie on the GPU and are not empty.
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

/// Forms in the job's store, by which a receiver learns what comes before it comes.
class FormsBoard {
 public:
  explicit FormsBoard(Job& job) : job_(job), store_(job.watch().store("forms")) {}

  void tell(const std::string& key, const TensorForms& forms) {
    job_.watch().run_interruptibly("a first transfer", [store = store_, key, forms] {
      const auto words = to_words(forms);
      store->set(key, fmt::format("{}", fmt::join(words, " ")));
    });
  }

  TensorForms ask(const std::string& key) {
    const auto answer = std::make_shared<std::vector<std::int64_t>>();
    job_.watch().run_interruptibly("a first transfer", [store = store_, key, answer] {
      const auto bytes = store->get(key);
      std::istringstream text(std::string(bytes.begin(), bytes.end()));
      for (std::int64_t word = 0; text >> word;)
        answer->push_back(word);
      store->deleteKey(key);  // there is one receiver
    });
    return forms_from_words(*answer);
  }

 private:
  Job& job_;
  Watch::Store store_;
};

/// What shares one in-order queue, and the receives that the Program has come to but that have not
/// been submitted, as it is not known yet what they bring.
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
        host_(job),
        board_(job),
        exceptions_(std::uncaught_exceptions()) {
    listener_ = job_.watch().on_failure([this](const std::string& why) { end(why); });
  }

  ~NcclTransport() override {
    if (std::uncaught_exceptions() > exceptions_)
      job_.abort(fmt::format("rank {} has ended early", job_.rank()));
    job_.watch().forget(listener_);
    host_.end("the transport has been closed");
  }

  /// Makes the communicators, each of which two ranks begin together: in an order that is the same
  /// on all of them, so that none waits for one that waits for it.
  void expect(int /*rank*/, const std::vector<Transfer>& transfers, Shapes shapes) override {
    shapes_ = shapes;
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
    job_.require_going();
    Queue& queue = queue_of(transfer);
    // Where both directions share a queue, what was posted before goes first.
    while (!queue.waiting.empty())
      submit_next(queue);
    const TensorForms forms = forms_of(tensors);
    if (shapes_ == Shapes::Varying)
      board_.tell(key_of_one(transfer), forms);
    else if (sent_forms_.before_news(transfer, forms).has_value())
      board_.tell(key_of_route(transfer), forms);
    queue.communicator->move({{values_on_gpu(tensors), transfer.to}}, {});
    if (options_.wait_until_taken)
      queue.communicator->stream().finish();
  }

  Tensors receive(const Transfer& transfer) override {
    job_.require_going();
    const auto key = key_of(transfer.instruction);
    if (!submitted_.contains(key)) {
      const Watch::Waiting waiting(job_.watch(), {transfer.from}, to_string(transfer.instruction));
      Queue& queue = queue_of(transfer);
      while (!submitted_.contains(key) && !queue.waiting.empty())
        submit_next(queue);
    }
    Submitted found = std::move(submitted_.extract(key).mapped());
    Tensors tensors = adopt(std::move(found.tensors), found.there);
    set_requires_grad(tensors, found.forms);
    return tensors;
  }

  /// What lies on the CPU goes over Gloo, with the forms of all, and what lies on the GPU then.
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts) override {
    job_.require_going();
    // All members must agree whether they need a communicator, whatever is for whom.
    const bool mine_on_gpu = std::any_of(
        parts.begin(), parts.end(), [](const Tensors& part) { return any_on_gpu(forms_of(part)); });
    std::vector<Tensors> host;
    for (const Tensors& part : parts) {
      Tensors& told = host.emplace_back();
      told.push_back(at::tensor(to_words(forms_of(part)), at::kLong));
      for (const at::Tensor& tensor : part)
        if (tensor.defined() && tensor.is_cpu())
          told.push_back(tensor);
      told.push_back(at::full({1}, mine_on_gpu, at::kLong));
    }
    const auto told = host_.all_to_all(group, rank, host);
    const bool on_gpu_anywhere = std::any_of(told.begin(), told.end(), [](const Tensors& theirs) {
      return theirs.back().item<std::int64_t>() != 0;
    });
    NcclCommunicator* const communicator = on_gpu_anywhere ? &communicator_of(group) : nullptr;
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
    // Whoever reads these waits for the others to have read: on the device too.
    there.wait();
    return all;
  }

  void require_going() override { job_.require_going(); }
  void abort(const std::string& why) override { job_.abort(why); }

 private:
  /// In rising order, but for Edge: sender and receiver.
  using Members = std::vector<int>;
  struct Submitted {
    Tensors tensors;
    TensorForms forms;
    Event there;
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
  static std::string key_of_route(const Transfer& transfer) {
    const plan::Instruction receive = receiving_end(transfer.instruction);
    return fmt::format("{}>{} {} {}", transfer.from, transfer.to, static_cast<int>(receive.kind),
                       receive.stage);
  }
  static std::string key_of_one(const Transfer& transfer) {
    return fmt::format("{} {}", key_of_route(transfer), transfer.instruction.microbatch);
  }

  /// Waits, where it must, until the sender has said what comes.
  void submit_next(Queue& queue) {
    const Transfer transfer = queue.waiting.front();
    queue.waiting.pop_front();
    TensorForms forms;
    if (shapes_ == Shapes::Varying) {
      forms = board_.ask(key_of_one(transfer));
    } else {
      const auto [known, fresh] = known_.try_emplace(route_of(transfer));
      if (fresh)
        known->second = board_.ask(key_of_route(transfer));
      forms = known->second;
    }
    Tensors tensors;
    {
      const OnStream stream(queue.communicator->stream());
      tensors = tensors_like(forms, device_);
    }
    const Event there = queue.communicator->move({}, {{on_gpu(tensors), transfer.from}});
    submitted_[key_of(transfer.instruction)] = {std::move(tensors), std::move(forms), there};
  }

  static TensorForms forms_told(const Tensors& told) {
    const at::Tensor& words = told.front();
    const auto* const first = words.const_data_ptr<std::int64_t>();
    return forms_from_words({first, first + words.numel()});
  }

  /// What a member has told, with places for what comes from its GPU over `communicator`, if any.
  Tensors assemble(const Tensors& told, const TensorForms& forms,
                   const NcclCommunicator* communicator) const {
    Tensors tensors;
    {
      const OnStream stream(communicator == nullptr ? OnStream::current() : communicator->stream());
      tensors = tensors_like(forms, device_);
    }
    std::size_t next = 1;
    for (std::size_t t = 0; t < forms.size(); ++t)
      if (forms[t].defined && forms[t].on_cpu)
        tensors[t] = told[next++];
    return tensors;
  }

  /// Groups are made at the first collective of their members, perhaps by several threads.
  NcclCommunicator& communicator_of(const std::vector<int>& group) {
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
      auto made = connect(fmt::format("group {}", fmt::join(group, ",")), group);
      const std::lock_guard lock(mutex_);
      slot->communicator = std::move(made);
    }
    return *slot->communicator;
  }

  void end(const std::string& why) {
    const std::lock_guard lock(mutex_);
    for (auto& [members, queue] : queues_)
      queue.communicator->abort();
    for (auto& [members, slot] : groups_)
      if (slot->communicator)
        slot->communicator->abort();
    host_.end(why);
  }

  Job& job_;
  at::Device device_;
  TransferOptions options_;
  Shapes shapes_ = Shapes::Fixed;  // of the pass that is under way
  GlooCollectives host_;
  FormsBoard board_;
  const int exceptions_;  // under way when this was made
  int listener_ = 0;

  SentForms sent_forms_;
  std::map<Route, TensorForms> known_;
  std::map<plan::InstructionKey, Submitted> submitted_;
  std::mutex mutex_;  // of what `end` goes through
  std::map<Members, Queue> queues_;
  std::map<std::vector<int>, std::unique_ptr<Slot>> groups_;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(Job& job, at::Device device,
                                               TransferOptions options) {
  return std::make_unique<NcclTransport>(job, device, options);
}

}  // namespace pipewright::exec
