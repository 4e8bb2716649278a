#include "pipewright/engine/models/paced.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <ratio>
#include <thread>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

using plan::Seconds;

constexpr Seconds longest{3600};

/// A point in time after a given duration. The duration starts before the layer's real work, so
/// that this work is part of the pace and not added to it.
class Deadline {
 public:
  explicit Deadline(Seconds from_now) : Deadline(Clock::now(), from_now) {}

  /// Returns the deadline of an autograd node in a backward. LibTorch's time between two nodes is
  /// part of the pace, because it is part of a backward's cost: the second node's duration starts
  /// when the first ends.
  static Deadline in_backward(Seconds duration) {
    thread_local int last_task = -1;
    thread_local Clock::time_point last_end;
    const int task = torch::autograd::get_current_graph_task_id();
    const Deadline deadline(task == last_task ? last_end : Clock::now(), duration);
    last_task = task;
    last_end = deadline.end_;
    return deadline;
  }

  /// Sleeps most of the time and spins at the end, because a sleeping thread wakes up late.
  void sleep() const {
    // Sets this thread's timer slack to its minimum, in ns: by default the kernel may wake it 50 µs
    // late.
    thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    (void)slack;  // if the call is not permitted, wake-ups are later
    constexpr std::chrono::microseconds awake{120};
    const auto since_start = std::chrono::nanoseconds((end_ - awake).time_since_epoch()).count();
    const std::timespec wake{.tv_sec = since_start / std::nano::den,
                             .tv_nsec = since_start % std::nano::den};
    // Sleep again if a signal interrupts it.
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) == EINTR) {
    }
    while (Clock::now() < end_)
      std::this_thread::yield();
  }

 private:
  using Clock = std::chrono::steady_clock;  // on Linux CLOCK_MONOTONIC
  Deadline(Clock::time_point begin, Seconds duration)
      : end_(begin + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(duration.value))) {}

  Clock::time_point end_;
};

/// The identity, with a gradient that takes `duration`. LibTorch runs a node's backward only if its
/// input's gradient is needed.
class SlowGradient : public torch::autograd::Function<SlowGradient> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            double duration) {
    context->saved_data["duration"] = duration;
    return input;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    Deadline::in_backward(Seconds{context->saved_data["duration"].toDouble()}).sleep();
    return {std::move(gradients.front()), at::Tensor()};
  }
};

/// Input and weight are added, each after a separate slow gradient, so that the backward can be
/// split.
class Paced final : public exec::Layer {
 public:
  explicit Paced(const PacedTimes& times)
      : times_(times), weight_(register_parameter("weight", at::zeros({1}))) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    const Deadline end(times_.forward);
    at::Tensor output = SlowGradient::apply(input, times_.input_gradient.value) +
                        SlowGradient::apply(weight_, times_.weight_gradient.value);
    end.sleep();
    return output;
  }

 private:
  PacedTimes times_;
  at::Tensor weight_;
};

}  // namespace

exec::LayerSpec paced_layer(std::string name, const PacedTimes& times) {
  for (const Seconds time : {times.forward, times.input_gradient, times.weight_gradient})
    if (!(time >= Seconds{} && time <= longest))
      throw plan::InputError(fmt::format("layer {}: paced at {} s; possible are 0 to {} s", name,
                                         time.value, longest.value));
  return {.name = std::move(name), .build = [times] { return std::make_shared<Paced>(times); }};
}

}  // namespace pipewright::engine
