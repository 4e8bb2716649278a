#pragma once

// The receiving end of a connection: receives are posted ahead of their use.

#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "message.hpp"
#include "sent_forms.hpp"

namespace pipewright::exec {

/// All receives from one peer. They are posted in the order of the Program, ahead of their use, so
/// that the peer need not wait for this rank's compute: at least two, and as many more as take
/// little memory. That memory counts as the transport's; a rank's account has only tensors that it
/// has taken. No thread waits for a receive before its data are requested, so none needs a core.
///
/// They are posted when a transfer has arrived, that is, when the peer has just sent. If a rank is
/// notified of a receive while it sends, Gloo's thread may interrupt it. That thread then spins for
/// the connection's lock until the kernel's next tick.
class Incoming {
 public:
  /// The mesh of a transfer, its tag, and the tag of its route's first message.
  struct Line {
    GlooMesh* mesh = nullptr;
    int tag = 0;
    int message_tag = 0;
  };
  struct Options {
    bool ahead = true;
    bool dynamic = false;  // each transfer has its own forms; nothing is posted ahead
  };
  Incoming(Options options, std::function<Line(const Transfer&)> line_of)
      : options_(options), line_of_(std::move(line_of)) {}

  /// Begins a pass, in which each route sends its forms again.
  void begin_pass();
  void expect(const Transfer& transfer);
  /// Blocks until the transfer has arrived. Throws Aborted.
  Tensors take(const Transfer& transfer);

 private:
  /// The state of a route.
  struct OfRoute {
    TensorForms forms{};      // of the last message
    bool is_awaited = false;  // a receive for this pass's message is posted
    bool is_open = false;     // this pass's message has arrived
    AwaitedMessage message{};
  };
  struct Awaited {
    Transfer transfer;
    bool is_posted = false;
    Tensors tensors{};
    Operations operations{};
  };

  Tensors take_dynamic(const Transfer& transfer) const;
  void await_message(const Transfer& transfer);
  void open_message(const Transfer& transfer);
  void post_ahead();
  void post(Awaited& awaited);
  Tensors wait_for(Awaited awaited);

  const Options options_;
  const std::function<Line(const Transfer&)> line_of_;
  std::map<Route, OfRoute> routes_;
  std::list<Awaited> awaited_;  // in the order of the Program
  std::map<plan::InstructionKey, std::list<Awaited>::iterator> places_;
  std::map<plan::InstructionKey, Tensors> there_;  // arrived in the route's first message
  int posted_ = 0;                                 // number of awaited transfers that are posted
  std::int64_t posted_bytes_ = 0;
};

}  // namespace pipewright::exec
