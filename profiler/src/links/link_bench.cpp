#include "pipewright/profiler/links/link_bench.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>

#include "computing_pair.hpp"
#include "cores/computing.hpp"
#include "cores/cpu_clock.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/plan/cluster/link_fit.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/profiler/layers/played_shards.hpp"

namespace pipewright::profiler {
namespace {

using exec::Tensors;
using exec::Transfer;
using plan::Bytes;
using plan::InstructionKind;
using Clock = std::chrono::steady_clock;

// Uncounted repeats of a pass: the first message also has the forms.
constexpr int warm_up = 1;
constexpr int most_repeats = 20;               // of a pass
constexpr std::array rounds{0.5, 0.25, 0.25};  // shares of the time
constexpr int told_to_stop = -1;
constexpr std::size_t least_sizes = 3;  // measured regardless of time; fewer sizes are useless

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<Bytes> sizes_up_to(Bytes largest, std::int64_t least, std::int64_t factor) {
  std::vector<Bytes> sizes;
  for (std::int64_t size = least; size <= largest.value; size *= factor)
    sizes.push_back({size});
  return sizes;
}

/// Returns sizes of sums that give each rank a whole number of elements.
std::vector<Bytes> sums_up_to(Bytes largest) { return sizes_up_to(largest, 64, 4); }

/// One rank's part in all measurements.
class LinkBench {
 public:
  LinkBench(const LinkPlace& place, const LinkRanks& who, const LinkLimits& limits,
            const LinkProgress& progress, const std::atomic<bool>* stop)
      : place_(place),
        who_(who),
        limits_(limits),
        progress_(progress),
        stop_(stop),
        on_device_(place.device, account_),
        everybody_(static_cast<std::size_t>(place.ranks)) {
    std::iota(everybody_.begin(), everybody_.end(), 0);
  }

  std::optional<plan::LinkSamples> measure();

 private:
  /// Seconds of each repeat as this rank measured them; empty if it was not involved.
  using Seconds = std::vector<double>;
  using Play = std::function<Seconds(Bytes size, int repeats)>;
  /// Returns the duration of a repeat, given the time that it measures.
  using Cost = std::function<double(Bytes size, double seconds)>;

  bool leads() const { return place_.rank == 0; }
  at::Tensor payload(Bytes size) const {
    return at::full({size.value}, 1, at::TensorOptions(at::kByte).device(place_.device.device));
  }
  std::optional<LinkMessages> own_messages(int pairs) const;
  void begin_pass(const std::vector<LinkMessages>& own, int repeats);
  at::Tensor receive(const Transfer& transfer);
  Seconds there_and_back(Bytes size, int repeats);
  Seconds both_at_once(Bytes size, int repeats);
  Seconds pairs_at_once(int pairs, Bytes size, double answer_s, int repeats);
  Seconds computing(ComputingPart part, Bytes size, double computing_s, int repeats);
  plan::ComputingSeries computing_series(const plan::Link& idle, double share);
  /// The kind of time that is measured for a sum: wall-clock time, or CPU time of this process.
  enum class Of { Wall, Cpu };
  Seconds sum(int devices, Bytes size, int repeats, Of of);
  Seconds shard_sum(int devices, Bytes size, int repeats);
  Seconds beside_compute(Bytes size, double alone_s, int repeats);
  plan::LinkSeries beside_compute_series(const plan::LinkSeries& alone, double share);
  Seconds sums_of(const std::vector<int>& group, Bytes size, int repeats, Of of,
                  const exec::OnDevice& on_device);

  int told_by_leader(int number);
  std::vector<Seconds> of_all_ranks(const Seconds& mine);
  Seconds mean_of_ranks(const Seconds& mine);
  plan::LinkSeries series(const char* what, const std::vector<Bytes>& sizes, double share,
                          const Cost& cost, const Play& play);

  const LinkPlace& place_;
  const LinkRanks& who_;
  const LinkLimits& limits_;
  const LinkProgress& progress_;
  const std::atomic<bool>* stop_;
  exec::MemoryAccount account_;
  exec::OnDevice on_device_;
  std::vector<int> everybody_;
  std::optional<Computing> work_;
  bool was_stopped_ = false;
};

std::optional<LinkMessages> LinkBench::own_messages(int pairs) const {
  for (int p = 0; p < pairs; ++p)
    if (const auto [low, high] = who_.pairs[static_cast<std::size_t>(p)];
        low == place_.rank || high == place_.rank)
      return LinkMessages{low, high};
  return {};
}

/// Begins a pass as a step does: all its transfers are announced.
void LinkBench::begin_pass(const std::vector<LinkMessages>& own, int repeats) {
  std::vector<Transfer> transfers;
  for (int m = 0; m < warm_up + repeats; ++m)
    for (const LinkMessages& messages : own) {
      transfers.push_back(messages.sent_by(place_.rank, m));
      transfers.push_back(messages.received_by(place_.rank, m));
    }
  place_.transport.expect(place_.rank, transfers, exec::Shapes::Fixed);
}

at::Tensor LinkBench::receive(const Transfer& transfer) {
  const Tensors tensors = place_.transport.receive(transfer);
  place_.transport.wait_for_device([this] { return on_device_.is_done(); }, "a transfer");
  return tensors.at(0);
}

LinkBench::Seconds LinkBench::there_and_back(Bytes size, int repeats) {
  const auto own = own_messages(1);
  begin_pass(own ? std::vector{*own} : std::vector<LinkMessages>{}, repeats);
  Seconds seconds;
  if (!own)
    return seconds;
  const at::Tensor tensor = payload(size);
  const bool begins = own->low == place_.rank;
  for (int m = 0; m < warm_up + repeats; ++m) {
    const Transfer incoming = own->received_by(place_.rank, m);
    place_.transport.post(incoming);
    const auto begin = Clock::now();
    if (begins)
      place_.transport.send(own->sent_by(place_.rank, m), {tensor});
    receive(incoming);
    if (!begins)
      place_.transport.send(own->sent_by(place_.rank, m), {tensor});
    if (begins && m >= warm_up)
      seconds.push_back(since(begin) / 2);
  }
  return seconds;
}

LinkBench::Seconds LinkBench::both_at_once(Bytes size, int repeats) {
  const auto own = own_messages(1);
  begin_pass(own ? std::vector{*own} : std::vector<LinkMessages>{}, repeats);
  Seconds seconds;
  if (!own)
    return seconds;
  const at::Tensor tensor = payload(size);
  for (int m = 0; m < warm_up + repeats; ++m) {
    const Transfer incoming = own->received_by(place_.rank, m);
    place_.transport.post(incoming);
    const auto begin = Clock::now();
    place_.transport.send(own->sent_by(place_.rank, m), {tensor});
    receive(incoming);
    if (m >= warm_up)
      seconds.push_back(since(begin));
  }
  return seconds;
}

/// Sends in one direction on all pairs at once; each tensor is answered by one byte, whose time
/// `answer_s` is subtracted. With large messages in both directions, pairs would soon alternate,
/// each using a free direction. Measures until the last pair is done, because pairs need not share
/// the link evenly.
LinkBench::Seconds LinkBench::pairs_at_once(int pairs, Bytes size, double answer_s, int repeats) {
  const auto own = own_messages(pairs);
  const bool begins = own && own->low == place_.rank;
  const at::Tensor tensor = payload(begins ? size : Bytes{1});
  begin_pass(own ? std::vector{*own} : std::vector<LinkMessages>{}, repeats);
  const auto exchange = [&](int m) {
    const Transfer incoming = own->received_by(place_.rank, m);
    place_.transport.post(incoming);
    if (begins)
      place_.transport.send(own->sent_by(place_.rank, m), {tensor});
    receive(incoming);
    if (!begins)
      place_.transport.send(own->sent_by(place_.rank, m), {tensor});
  };
  for (int m = 0; own && m < warm_up; ++m)
    exchange(m);
  of_all_ranks({});  // a barrier, so that all begin at once
  const auto begin = Clock::now();
  for (int m = warm_up; own && m < warm_up + repeats; ++m)
    exchange(m);
  const Seconds seconds = begins ? Seconds{since(begin) / repeats} : Seconds{};
  double longest = 0;
  for (const Seconds& theirs : of_all_ranks(seconds))
    for (const double each : theirs)
      longest = std::max(longest, each);
  return {std::max(0.0, longest - answer_s)};
}

/// Measures while one rank of a pair computes, on threads like those of ranks.
LinkBench::Seconds LinkBench::computing(ComputingPart part, Bytes size, double computing_s,
                                        int repeats) {
  const auto own = own_messages(1);
  const int exchanges = repeats + 1;  // the last one only has control messages
  begin_pass(own ? computing_routes(*own) : std::vector<LinkMessages>{}, exchanges);
  return own ? while_computing(place_, *own, part, size, computing_s, warm_up, warm_up + exchanges)
             : Seconds{};
}

/// Measures the series with computing ranks. `idle` is the link between ranks that do not compute.
plan::ComputingSeries LinkBench::computing_series(const plan::Link& idle, double share) {
  constexpr std::int64_t least = std::int64_t{1} << 14;  // smaller sizes take equally long
  std::vector<Bytes> sizes{{1}};
  for (const Bytes size : sizes_up_to(limits_.largest, least, 2))
    sizes.push_back(size);
  // About as long as an action takes, and longer than a transfer.
  const auto computing_s = [&](Bytes size) {
    return 2e-3 + 2 * plan::transfer_time(idle, size).value;
  };
  const auto measured = [&](const char* what, ComputingPart part) {
    // Pauses and computing take longer than the measured time.
    const Cost cost = [&](Bytes size, double seconds) { return seconds + 5 * computing_s(size); };
    return series(what, sizes, share / 4, cost, [&](Bytes size, int repeats) {
      return computing(part, size, computing_s(size), repeats);
    });
  };
  // A sum's CPU time says little about its duration.
  const Cost sum_cost = [&](Bytes size, double seconds) {
    return seconds + 2 * plan::transfer_time(idle, size).value;
  };
  plan::ComputingSeries found;
  found.arrival = measured("while the sender computes", ComputingPart::Arrival);
  found.sender = measured("compute time lost by sending", ComputingPart::Sender);
  found.receiver = measured("compute time lost by receiving", ComputingPart::Receiver);
  found.sum = series("compute time lost by sums", sums_up_to(limits_.largest), share / 4, sum_cost,
                     [&](Bytes size, int repeats) { return sum(2, size, repeats, Of::Cpu); });
  return found;
}

/// Runs sums on a thread like that of a rank's collectives.
LinkBench::Seconds LinkBench::sum(int devices, Bytes size, int repeats, Of of) {
  const std::vector<int> group(who_.ring.begin(), who_.ring.begin() + devices);
  begin_pass({}, 0);
  if (!std::binary_search(group.begin(), group.end(), place_.rank))
    return {};
  const auto work = [&] {
    at::set_num_threads(1);
    exec::run_in_short_slices();
    const exec::OnDevice on_device(place_.device, account_);
    return sums_of(group, size, repeats, of, on_device);
  };
  return std::async(std::launch::async, work).get();
}

/// Runs sums as those of gradients: each member adds its shard and all gather the sums. Sums are
/// consecutive, so that none waits for a member that starts late.
LinkBench::Seconds LinkBench::sums_of(const std::vector<int>& group, Bytes size, int repeats, Of of,
                                      const exec::OnDevice& on_device) {
  const auto devices = static_cast<int>(group.size());
  const auto options = at::TensorOptions(at::kFloat).device(place_.device.device);
  const std::int64_t numbers = size.value / 4;
  const at::Tensor gradient = at::full({numbers}, 0, options);
  const auto part = [&](const at::Tensor& whole, int member) {
    const std::int64_t begin = numbers * member / devices;
    return whole.narrow(0, begin, numbers * (member + 1) / devices - begin);
  };
  const at::Tensor label = at::full({1, 2}, 0, at::kLong);
  const auto now = [&] {
    return of == Of::Cpu ? cpu_of_process() : clock_seconds(CLOCK_MONOTONIC);
  };
  Seconds seconds;
  for (int m = 0; m < warm_up + repeats; ++m) {
    const double begin = now();
    std::vector<Tensors> parts;
    for (int member = 0; member < devices; ++member)
      parts.push_back({label, part(gradient, member)});
    const auto theirs = place_.transport.all_to_all(group, place_.rank, parts, exec::Lane::Beside);
    at::Tensor total = theirs[0].at(1).clone();
    for (std::size_t member = 1; member < theirs.size(); ++member)
      total.add_(theirs[member].at(1));
    const auto all = place_.transport.all_gather(group, place_.rank, {total});
    for (int member = 0; member < devices; ++member)
      part(gradient, member).copy_(all[static_cast<std::size_t>(member)].at(0));
    place_.transport.wait_for_device([&] { return on_device.is_done(); }, "a sum");
    if (m >= warm_up)
      seconds.push_back(now() - begin);
  }
  return seconds;
}

/// Runs tensor-parallel sums, one after the other, on the rank's own thread.
LinkBench::Seconds LinkBench::shard_sum(int devices, Bytes size, int repeats) {
  begin_pass({}, 0);
  const auto found = std::find(who_.ring.begin(), who_.ring.end(), place_.rank);
  const int index = static_cast<int>(found - who_.ring.begin());
  if (index >= devices)
    return {};
  PlayedShards shards({.index = index, .count = devices, .groups = devices});
  shards.meet(place_.transport, {who_.ring.begin(), who_.ring.begin() + devices}, place_.rank);
  const exec::TensorParallelPlace seat{
      .index = index, .count = devices, .groups = devices, .group = &shards};
  const auto options = at::TensorOptions(at::kFloat).device(place_.device.device);
  const at::Tensor own = at::full({size.value / 4}, 0, options);
  Seconds seconds;
  for (int m = 0; m < warm_up + repeats; ++m) {
    const double before = shards.passed_on().seconds.value;
    const at::Tensor sum = exec::added_up({own}, seat);
    place_.transport.wait_for_device([&] { return on_device_.is_done(); }, "a tensor-parallel sum");
    if (m >= warm_up)
      seconds.push_back(shards.passed_on().seconds.value - before);
  }
  return seconds;
}

/// Measures the time that a tensor-parallel sum of two ranks adds to concurrent compute, which
/// takes 1.5 times as long. The two run on threads like those of a fused pair's actions.
LinkBench::Seconds LinkBench::beside_compute(Bytes size, double alone_s, int repeats) {
  begin_pass({}, 0);
  const std::vector<int> group(who_.ring.begin(), who_.ring.begin() + 2);
  if (!std::binary_search(group.begin(), group.end(), place_.rank))
    return {};
  const int sums = warm_up + repeats;
  const at::Tensor own = at::full({size.value / 4}, 0, at::kFloat), word = at::zeros({1});
  const auto exchange = [&](const at::Tensor& tensor) {
    place_.transport.all_to_all(group, place_.rank, {{tensor}, {tensor}}, exec::Lane::Compute);
  };
  if (!work_)
    work_.emplace();
  const auto compute = [&] { work_->run(1.5 * alone_s * sums); };
  exchange(word);  // a barrier, so that both begin at once
  auto begin = Clock::now();
  compute();
  const double computed_s = since(begin);
  exchange(word);
  begin = Clock::now();
  auto beside = std::async(std::launch::async, [&] {
    at::set_num_threads(1);
    exec::run_in_short_slices();
    for (int m = 0; m < sums; ++m)
      exchange(own);
  });
  compute();
  beside.get();
  return {std::max(0.0, since(begin) - computed_s) / sums};
}

/// Measures the sizes that were measured alone; only large sizes if there are any, because small
/// ones consist of start and end only.
plan::LinkSeries LinkBench::beside_compute_series(const plan::LinkSeries& alone, double share) {
  const auto alone_s = [&](Bytes size) {
    for (const plan::LinkSample& sample : alone.samples)
      if (sample.size == size)
        return sample.time.value;
    return 0.0;
  };
  constexpr Bytes large{1 << 12};
  std::vector<Bytes> sizes;
  for (const plan::LinkSample& sample : alone.samples)
    if (sample.size >= large || alone.samples.back().size < large)
      sizes.push_back(sample.size);
  const Cost cost = [&](Bytes size, double) { return 3.5 * alone_s(size); };
  return series(
      "tensor-parallel sums during compute", sizes, share, cost,
      [&](Bytes size, int repeats) { return beside_compute(size, alone_s(size), repeats); });
}

int LinkBench::told_by_leader(int number) {
  const auto all =
      place_.transport.all_gather(everybody_, place_.rank, {at::full({1}, number, at::kLong)});
  return static_cast<int>(all.front().at(0).item<std::int64_t>());
}

std::vector<LinkBench::Seconds> LinkBench::of_all_ranks(const Seconds& mine) {
  std::vector<Seconds> all;
  for (const Tensors& theirs :
       place_.transport.all_gather(everybody_, place_.rank, {at::tensor(mine, at::kDouble)})) {
    const auto* const times = theirs.at(0).const_data_ptr<double>();
    all.emplace_back(times, times + theirs.at(0).numel());
  }
  return all;
}

/// Returns the mean over the ranks that measured, by repeat.
LinkBench::Seconds LinkBench::mean_of_ranks(const Seconds& mine) {
  Seconds sums;
  double seen = 0;
  for (const Seconds& times : of_all_ranks(mine)) {
    if (times.empty())
      continue;
    sums.resize(times.size());
    for (std::size_t m = 0; m < sums.size(); ++m)
      sums[m] += times[m];
    ++seen;
  }
  for (double& each : sums)
    each /= seen;
  return sums;
}

/// The measurements of a series so far.
struct Measured {
  std::vector<Bytes> sizes;
  std::vector<std::vector<double>> times;  // by size

  /// Returns the expected time of a repeat. For a new size, the previous size's time is scaled with
  /// the size, which is an upper bound.
  double expected(std::size_t size) const {
    if (!times[size].empty())
      return plan::median(times[size]);
    if (size == 0)
      return 0;
    return plan::median(times[size - 1]) * static_cast<double>(sizes[size].value) /
           static_cast<double>(sizes[size - 1].value);
  }
};

/// Returns how many repeats of `seconds` each fit, so that as much time stays for each later size;
/// 0 if none.
int repeats_within(double left, std::size_t sizes_left, double seconds) {
  constexpr double kept = 2;  // larger sizes need more than smaller ones
  if (seconds <= 0)
    return most_repeats;
  if ((1 + warm_up) * seconds > left)
    return 0;
  const double some = left / (sizes_left > 1 ? kept * static_cast<double>(sizes_left) : 1);
  return static_cast<int>(
      std::clamp(some / seconds - warm_up, 1.0, static_cast<double>(most_repeats)));
}

/// Returns the samples of the `count` smallest sizes, which were measured.
std::vector<plan::LinkSample> samples_of(const Measured& measured, std::size_t count) {
  std::vector<plan::LinkSample> samples;
  for (std::size_t s = 0; s < count; ++s)
    samples.push_back({.size = measured.sizes[s],
                       .time = {plan::median(measured.times[s])},
                       .spread = plan::spread(measured.times[s]),
                       .repeats = static_cast<int>(measured.times[s].size())});
  return samples;
}

plan::LinkSeries LinkBench::series(const char* what, const std::vector<Bytes>& sizes, double share,
                                   const Cost& cost, const Play& play) {
  const auto begin = Clock::now();
  Measured measured{sizes, std::vector<Seconds>(sizes.size())};
  std::size_t count = sizes.size();
  plan::LinkSeries found;
  double until = 0;
  for (const double part : rounds) {
    until += part * share * limits_.within.value;
    for (std::size_t s = 0; s < count && !was_stopped_; ++s) {
      const bool is_new = measured.times[s].empty();
      const double left = until - since(begin);
      int repeats = repeats_within(left, count - s, cost(sizes[s], measured.expected(s)));
      if (repeats == 0 && is_new && s < least_sizes)
        repeats = 1;
      repeats = told_by_leader(stop_ != nullptr && *stop_ ? told_to_stop : repeats);
      was_stopped_ = repeats == told_to_stop;
      if (repeats > 0) {
        if (leads() && progress_)
          progress_(what, sizes[s]);
        const Seconds seconds = mean_of_ranks(play(sizes[s], repeats));
        measured.times[s].insert(measured.times[s].end(), seconds.begin(), seconds.end());
      } else if (is_new) {
        count = s;
        found.ended = fmt::format("{} bytes would have taken longer than the remaining {:.1f} s",
                                  sizes[s].value, std::max(0.0, left));
      }
    }
  }
  found.samples = samples_of(measured, count);
  return found;
}

std::optional<plan::LinkSamples> LinkBench::measure() {
  const bool with_computing = place_.computing_ranks > 0;
  const double share_computing = with_computing ? 0.35 : 0, rest = 1 - share_computing;
  const double share_one_way = 0.45 * rest, share_both = 0.1 * rest, share_at_once = 0.15 * rest,
               share_sums = 0.2 * rest, share_shards = 0.06 * rest, share_beside = 0.04 * rest;
  const Cost one_trip = [](Bytes, double seconds) { return seconds; };
  const Cost two_trips = [](Bytes, double seconds) { return 2 * seconds; };
  const auto fine = sizes_up_to(limits_.largest, 1, 2);
  const auto coarse = sizes_up_to(limits_.largest, 1, 4);
  const auto whole_numbers = sums_up_to(limits_.largest);
  const int pairs = static_cast<int>(who_.pairs.size());
  const int ring = static_cast<int>(who_.ring.size());
  plan::LinkSamples samples;
  samples.one_way = series("one way", fine, share_one_way, two_trips,
                           [&](Bytes size, int repeats) { return there_and_back(size, repeats); });
  samples.both_ways = series("both ways", coarse, share_both, one_trip,
                             [&](Bytes size, int repeats) { return both_at_once(size, repeats); });
  if (with_computing && !was_stopped_)
    samples.computing =
        computing_series(plan::fit_link(samples.one_way.samples).link, share_computing);
  for (int count = 2; count <= pairs && !was_stopped_; ++count) {
    const double answer_s = samples.one_way.samples.front().time.value;
    const Cost with_answer = [&](Bytes, double seconds) { return seconds + answer_s; };
    samples.at_once.push_back(series(
        "pairs at once", coarse, share_at_once / (pairs - 1), with_answer,
        [&](Bytes size, int repeats) { return pairs_at_once(count, size, answer_s, repeats); }));
  }
  for (int devices = 2; devices <= ring; ++devices)
    samples.sums.push_back(
        series("sums", whole_numbers, share_sums / (ring - 1), one_trip,
               [&](Bytes size, int repeats) { return sum(devices, size, repeats, Of::Wall); }));
  for (int devices = 2; devices <= ring; ++devices)
    samples.tensor_parallel_sums.push_back(
        series("tensor-parallel sums", whole_numbers, share_shards / (ring - 1), one_trip,
               [&](Bytes size, int repeats) { return shard_sum(devices, size, repeats); }));
  if (ring > 1 && place_.device.device.is_cpu() && !was_stopped_)
    samples.tensor_parallel_sums_during_compute =
        beside_compute_series(samples.tensor_parallel_sums.front(), share_beside);
  return was_stopped_ ? std::nullopt : std::optional(std::move(samples));
}

}  // namespace

std::optional<plan::LinkSamples> measure_links(const LinkPlace& place, const LinkRanks& who,
                                               const LinkLimits& limits,
                                               const LinkProgress& progress,
                                               const std::atomic<bool>* stop) {
  return LinkBench(place, who, limits, progress, stop).measure();
}

}  // namespace pipewright::profiler
