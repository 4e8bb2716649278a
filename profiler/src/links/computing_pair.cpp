#include "computing_pair.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <future>
#include <limits>
#include <vector>

#include "cores/computing.hpp"
#include "cores/cpu_clock.hpp"
#include "pipewright/exec/cpu/core.hpp"

namespace pipewright::profiler {
namespace {

using Seconds = std::vector<double>;

constexpr double least_time = 1e-7;  // the shortest time that clocks can measure

double now() { return clock_seconds(CLOCK_MONOTONIC); }

/// Returns the CPU time of this process's other threads.
double cpu_of_others() { return cpu_of_process() - cpu_of_this_thread(); }

/// Returns the CPU time of this thread in `work`.
template <class Work>
double cpu_of(const Work& work) {
  const double before = cpu_of_this_thread();
  work();
  return cpu_of_this_thread() - before;
}

/// Estimates how far another clock is ahead of this one, from the question with the shortest round
/// trip.
class OtherClock {
 public:
  void answered(double asked, double answered, double theirs) {
    if (answered - asked >= round_trip_)
      return;
    round_trip_ = answered - asked;
    ahead_ = theirs - (asked + answered) / 2;
  }
  double here(double theirs) const { return theirs - ahead_; }

 private:
  double ahead_ = 0, round_trip_ = std::numeric_limits<double>::infinity();
};

class Pair {
 public:
  Pair(const LinkPlace& place, const LinkMessages& own, ComputingPart part, plan::Bytes size,
       double computing_s, int warm_up, int exchanges)
      : place_(place),
        routes_(computing_routes(own)),
        part_(part),
        computing_s_(computing_s),
        tensor_(at::full({size.value}, 1, at::kByte)),
        word_(at::full({1}, 1, at::kByte)),
        warm_up_(warm_up),
        last_(exchanges - 1) {}

  /// Sends. When the other rank asks for a transfer, computes, sends and keeps computing. Each
  /// answer to a question has the clock's time and the time of the last send.
  Seconds send() {
    Seconds kept;
    double sent = 0;
    for (int m = 0; m <= last_; ++m) {
      receive(words(), m);
      send(words(), m, at::tensor({now(), sent}, at::kDouble));
      receive(own(), m);
      computing_.run(computing_s_ / 2);  // until the other rank sleeps
      const double before = cpu_of_others();
      sent = now();
      const double call = cpu_of([&] { send(own(), m, tensor_); });
      computing_.run(computing_s_);
      if (counts(m) && part_ == ComputingPart::Sender)
        kept.push_back(call + cpu_of_others() - before);
    }
    return kept;
  }

  /// Receives. Asks for each transfer when the other rank waits; then waits for the transfer, or
  /// computes meanwhile: two ranks that compute share caches and memory, so a sender's work for a
  /// transfer takes longer.
  Seconds receive() {
    Seconds kept, arrived, sent;
    OtherClock clock;
    for (int m = 0; m <= last_; ++m) {
      computing_.run(2 * computing_s_);  // until the other rank waits
      const double asked = now();
      send(words(), m, word_);
      const at::Tensor answer = receive(words(), m);
      const auto* const times = answer.const_data_ptr<double>();
      clock.answered(asked, now(), times[0]);
      if (m > warm_up_)
        sent.push_back(times[1]);
      place_.transport.post(own().received_by(place_.rank, m));
      send(own(), m, word_);
      if (part_ == ComputingPart::Sender)
        computing_.run(2 * computing_s_);  // as the sender does
      const double taking = part_ == ComputingPart::Receiver ? receive_computing(m) : 0;
      if (part_ != ComputingPart::Receiver)
        receive(own(), m);
      if (!counts(m))
        continue;
      arrived.push_back(now());
      kept.push_back(std::max(taking, least_time));
    }
    if (part_ == ComputingPart::Receiver)
      return kept;
    for (std::size_t m = 0; m < arrived.size(); ++m)
      arrived[m] = std::max(arrived[m] - clock.here(sent[m]), least_time);
    return part_ == ComputingPart::Arrival ? arrived : Seconds{};
  }

 private:
  const LinkMessages& own() const { return routes_.front(); }
  const LinkMessages& words() const { return routes_.back(); }
  bool counts(int m) const { return m >= warm_up_ && m < last_; }

  void send(const LinkMessages& route, int m, const at::Tensor& tensor) {
    place_.transport.send(route.sent_by(place_.rank, m), {tensor});
  }
  at::Tensor receive(const LinkMessages& route, int m) {
    return place_.transport.receive(route.received_by(place_.rank, m)).at(0);
  }

  double receive_computing(int m) {
    computing_.run(computing_s_ / 4);  // until its own message was sent
    const double before = cpu_of_others();
    computing_.run(computing_s_);
    const double call = cpu_of([&] { receive(own(), m); });
    return call + cpu_of_others() - before;
  }

  const LinkPlace& place_;
  std::vector<LinkMessages> routes_;
  ComputingPart part_;
  double computing_s_;
  at::Tensor tensor_, word_;
  int warm_up_, last_;
  Computing computing_;
};

}  // namespace

std::vector<LinkMessages> computing_routes(const LinkMessages& own) {
  LinkMessages words = own;
  words.first_stage = own.first_stage + 2;
  return {own, words};
}

std::vector<double> while_computing(const LinkPlace& place, const LinkMessages& own,
                                    ComputingPart part, plan::Bytes size, double computing_s,
                                    int warm_up, int exchanges) {
  const bool sends = own.low == place.rank;
  const exec::OnCoreOfRank core(sends ? 0 : 1, place.computing_ranks);
  const auto work = [&] {
    at::set_num_threads(1);
    Pair pair(place, own, part, size, computing_s, warm_up, exchanges);
    return sends ? pair.send() : pair.receive();
  };
  return std::async(std::launch::async, work).get();
}

}  // namespace pipewright::profiler
