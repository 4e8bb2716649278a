// Streams and events on a fake device that only records what its streams have waited for. It needs
// no GPU, and it finds every missing order, not only by chance.
#include "pipewright/exec/device/stream.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <map>
#include <mutex>
#include <thread>

#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "support/catch.hpp"

namespace stream_test {

using namespace pipewright;
using namespace pipewright::exec;

constexpr auto device_type = c10::DeviceType::PrivateUse1;

/// The amount of each stream's work that has been done when a point is reached.
using Past = std::map<c10::StreamId, int>;

class Account {
 public:
  void work(c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    ++pasts_[stream.id()][stream.id()];
  }
  Past past(c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    return pasts_[stream.id()];
  }
  void join(c10::Stream stream, const Past& past) {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, done] : past)
      pasts_[stream.id()][other] = std::max(pasts_[stream.id()][other], done);
  }
  void made_event() {
    const std::lock_guard lock(mutex_);
    ++events_;
  }
  int events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  c10::StreamId fresh() {
    const std::lock_guard lock(mutex_);
    return ++last_;
  }

 private:
  std::mutex mutex_;
  c10::StreamId last_ = 0;
  int events_ = 0;  // created so far
  std::map<c10::StreamId, Past> pasts_;
};

Account& account() {
  static Account only;
  return only;
}

thread_local c10::StreamId current_stream = 0;

class NoDevice final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return device_type; }
  c10::Device exchangeDevice(c10::Device device) const override { return device; }
  c10::Device getDevice() const override { return {device_type, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, current_stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, account().fresh());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return c10::Stream(c10::Stream::UNSAFE, stream.device(),
                       std::exchange(current_stream, stream.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    if (*event == nullptr)
      account().made_event();
    delete static_cast<Past*>(*event);
    *event = new Past(account().past(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    account().join(stream, *static_cast<Past*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Past*>(event);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NoDevice)

Stream new_stream() { return Stream::of({device_type, 0}, /*urgent=*/false); }

/// Returns true if all work submitted to `earlier` so far precedes the next work of `later`.
bool is_after(const Stream& later, const Stream& earlier) {
  const auto done = account().past(*earlier.native())[earlier.native()->id()];
  return account().past(*later.native())[earlier.native()->id()] == done;
}

TEST_CASE(
    "A stream waits at an event for the earlier work of another stream, and for nothing later",
    "[device]") {
  const Stream first = new_stream(), second = new_stream();
  Event event;
  {
    const OnStream on(first);
    account().work(*first.native());
    event = Event::now();
  }
  CHECK_FALSE(is_after(second, first));
  {
    const OnStream on(second);
    event.wait();
  }
  CHECK(is_after(second, first));
  account().work(*first.native());
  CHECK_FALSE(is_after(second, first));
}

TEST_CASE("An event that is no longer held is reused, and one that is held is not", "[device]") {
  const Stream first = new_stream(), second = new_stream();
  const OnStream on(first);
  const auto step = [&] {
    std::vector<std::pair<Event, Event>> told;
    for (int instruction = 0; instruction < 20; ++instruction)
      told.emplace_back(Event::timed(), Event::timed());
  };
  step();
  const int made = account().events();
  for (int later = 0; later < 5; ++later)
    step();
  CHECK(account().events() == made);
  // An untimed event is not reused for a timed one, and an event that is still held is not reused.
  account().work(*first.native());
  const Event held = Event::now();
  account().work(*first.native());
  { const Event after = Event::now(); }
  {
    const OnStream on_second(second);
    held.wait();
  }
  CHECK_FALSE(is_after(second, first));
  CHECK(account().past(*second.native())[first.native()->id()] == 1);
}

TEST_CASE("Streams nest, and a thread without one computes on the CPU", "[device]") {
  const Stream outer = new_stream(), inner = new_stream();
  CHECK_FALSE(OnStream::current().native());
  CHECK(Event::now().on_cpu());
  {
    const OnStream on_outer(outer);
    {
      const OnStream on_inner(inner);
      CHECK(*OnStream::current().native() == *inner.native());
      CHECK(current_stream == inner.native()->id());
    }
    CHECK(*OnStream::current().native() == *outer.native());
    CHECK(current_stream == outer.native()->id());
  }
  CHECK_FALSE(OnStream::current().native());
}

TEST_CASE("Received tensors are used after the sender has made them", "[device]") {
  const auto transport = make_in_process_transport(2);
  const Stream sender = new_stream(), receiver = new_stream();
  const Transfer send{plan::parse_instruction("0SEND_F3").value(), 0, 1};
  const Transfer receive{plan::counterpart(send.instruction), 0, 1};
  {
    const OnStream on(sender);
    account().work(*sender.native());
    transport->send(send, {at::ones({2})});
  }
  {
    const OnStream on(receiver);
    CHECK(transport->receive(receive).size() == 1);
  }
  CHECK(is_after(receiver, sender));
}

TEST_CASE("After an all-gather each rank's stream follows the work of all ranks", "[device]") {
  constexpr int members = 3;
  const auto transport = make_in_process_transport(members);
  std::vector<Stream> streams;
  for (int member = 0; member < members; ++member)
    streams.push_back(new_stream());
  const std::vector<int> group{0, 1, 2};
  // The second gather, which is empty, is the barrier after which all have read.
  for (const Tensors& handed_in : {Tensors{at::ones({1})}, Tensors{}}) {
    std::vector<std::thread> threads;
    for (int member = 0; member < members; ++member)
      threads.emplace_back([&, member] {
        const OnStream on(streams[static_cast<std::size_t>(member)]);
        account().work(*OnStream::current().native());
        transport->all_gather(group, member, handed_in);
      });
    for (std::thread& thread : threads)
      thread.join();
    for (const Stream& later : streams)
      for (const Stream& earlier : streams)
        CHECK(is_after(later, earlier));
  }
}

}  // namespace stream_test
