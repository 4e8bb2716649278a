#pragma once

// The receiving end of a connection: receives are posted ahead of their use.

#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "message.hpp"
#include "sent_forms.hpp"

namespace pipewright::exec {

/// All that comes from one peer. Receives are posted in the order of the Program, ahead of what has
/// been asked for, so that the peer need not wait for our compute: at least two, and as many as
/// take little memory, which is the transport's: a rank's account has what it has taken. Nobody
/// waits for them before they are asked for, so no thread has to get a core.
///
/// They are posted when a transfer has come, which is when the peer has just sent: a rank that
/// hears of a receive while it sends may be interrupted in the middle of it by Gloo's thread, which
/// then spins for the connection's lock until the kernel's next tick.
class Incoming {
 public:
  /// Over what a transfer comes, and under which names: its own, and that of its route's first
  /// message.
  struct Line {
    GlooMesh* mesh = nullptr;
    int tag = 0;
    int message_tag = 0;
  };
  struct Options {
    bool ahead = true;
    bool dynamic = false;  // each transfer says its own forms, and nothing is posted before
  };
  Incoming(Options options, std::function<Line(const Transfer&)> line_of)
      : options_(options), line_of_(std::move(line_of)) {}

  /// Each route will say its forms anew.
  void begin_pass();
  void expect(const Transfer& transfer);
  /// Waits for it. Throws Aborted.
  Tensors take(const Transfer& transfer);

 private:
  /// What is known of the transfers of a route.
  struct OfRoute {
    TensorForms forms{};      // of the last message
    bool is_awaited = false;  // the message of this pass
    bool is_open = false;     // it has come
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
  std::map<plan::InstructionKey, Tensors> there_;  // they came in the first message
  int posted_ = 0;                                 // of those awaited
  std::int64_t posted_bytes_ = 0;
};

}  // namespace pipewright::exec
