#include "pipewright/exec/data/read_ahead.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <semaphore>
#include <set>

#include "support/catch.hpp"

namespace read_ahead_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Records what is read, by which thread, and how far ahead of `take`.
class NotedData final : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    const std::lock_guard lock(mutex_);
    read.emplace_back(step, microbatch);
    threads.insert(std::this_thread::get_id());
    most_ahead = std::max(most_ahead, static_cast<int>(read.size()) - taken);
    if (microbatch == failing)
      throw std::runtime_error("the file has been truncated");
    begun.release();
    return at::full({4}, 10 * step + microbatch, at::kLong);
  }
  at::Tensor target(int step, int microbatch) const override {
    return at::full({2}, -(10 * step + microbatch), at::kLong);
  }
  double weight(int, int microbatch) const override { return 1 + microbatch; }

  /// Blocks until `count` reads have begun.
  void await_begun(int count) const {
    for (int i = 0; i < count; ++i)
      REQUIRE(begun.try_acquire_for(std::chrono::minutes(1)));
  }

  std::ptrdiff_t times_read(int step, int microbatch) const {
    const std::lock_guard lock(mutex_);
    return std::count(read.begin(), read.end(), std::pair(step, microbatch));
  }

  int failing = -1;
  std::atomic<int> taken{0};
  mutable std::vector<std::pair<int, int>> read;
  mutable std::set<std::thread::id> threads;
  mutable int most_ahead = 0;
  mutable std::counting_semaphore<> begun{0};

 private:
  mutable std::mutex mutex_;
};

std::vector<Reading> readings(const NotedData& data, int first_step, int steps, int microbatches) {
  std::vector<Reading> all;
  for (int step = first_step; step < first_step + steps; ++step)
    for (int m = 0; m < microbatches; ++m)
      all.push_back({&data, step, m, /*inputs=*/true, /*targets=*/false});
  return all;
}

int number_in(const ReadData& data) { return data.inputs.at(0)[0].item<int>(); }

TEST_CASE("Microbatches are read before they are taken, in order and up to a limit", "[exec]") {
  for (const int ahead : {1, 2, 5}) {
    NotedData data;
    ReadAhead reader(ahead);
    const auto all = readings(data, 0, 50, 4);
    reader.expect(all);
    data.await_begun(ahead);  // no data has been taken
    for (const Reading& one : all) {
      ++data.taken;
      CHECK(number_in(reader.take(one)) == 10 * one.step + one.microbatch);
    }
    CHECK(data.most_ahead == ahead);
    REQUIRE(data.read.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(data.read[i] == std::pair(all[i].step, all[i].microbatch));
    CHECK(data.threads.size() == 1);
    CHECK_FALSE(data.threads.contains(std::this_thread::get_id()));
  }
}

TEST_CASE("Without read-ahead the thread that takes a microbatch reads it", "[exec]") {
  NotedData data;
  ReadAhead reader(0);
  const auto all = readings(data, 3, 1, 2);
  reader.expect(all);
  CHECK(data.read.empty());
  CHECK(number_in(reader.take(all[1])) == 31);  // in any order
  CHECK(data.threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("Inputs, targets and weight are read only if they are needed", "[exec]") {
  const NotedData data;
  for (const int ahead : {0, 2}) {
    ReadAhead reader(ahead);
    const Reading both{&data, 1, 2, true, true}, last{&data, 1, 3, false, true};
    reader.expect({both, last});
    const ReadData first = reader.take(both);
    CHECK(number_in(first) == 12);
    CHECK(first.targets.at(0)[1].item<int>() == -12);
    CHECK(first.weight == 3);
    const ReadData second = reader.take(last);
    CHECK(second.inputs.empty());
    CHECK(second.targets.at(0)[0].item<int>() == -13);
    CHECK(second.weight == 4);
  }
}

TEST_CASE(
    "An exception of a read is thrown when its microbatch is taken, and reading stops after it",
    "[exec]") {
  NotedData data;
  data.failing = 1;
  ReadAhead reader(3);
  const auto all = readings(data, 0, 1, 4);
  reader.expect(all);
  CHECK(number_in(reader.take(all[0])) == 0);
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH(reader.take(all[1]), "the file has been truncated");
  reader.stop();
  CHECK(data.read == std::vector{std::pair(0, 0), std::pair(0, 1)});

  data.failing = -1;
  reader.expect(all);
  for (const Reading& one : all)
    CHECK(number_in(reader.take(one)) == one.microbatch);
}

TEST_CASE("Data read for the next step is kept, and dropped if other data is expected", "[exec]") {
  NotedData data, other;
  ReadAhead reader(2);
  reader.expect(readings(data, 0, 2, 2));
  for (const Reading& one : readings(data, 0, 1, 2))
    reader.take(one);
  data.await_begun(4);  // those of step 1 as well
  reader.expect(readings(data, 1, 2, 2));
  reader.expect({});  // a pass without LOADs
  CHECK(number_in(reader.take(readings(data, 1, 1, 1)[0])) == 10);
  CHECK(data.times_read(1, 0) == 1);

  reader.expect(readings(other, 7, 1, 1));
  CHECK(number_in(reader.take(readings(other, 7, 1, 1)[0])) == 70);
  reader.expect(readings(data, 1, 1, 2));
  for (const Reading& one : readings(data, 1, 1, 2))
    CHECK(number_in(reader.take(one)) == 10 + one.microbatch);
  CHECK(data.times_read(1, 1) == 2);
  CHECK_THROWS_WITH(reader.take(readings(data, 9, 1, 1)[0]),
                    "microbatch 0 of step 9 was requested out of order");
}

/// Always returns the same tensor.
class KeptData final : public Dataset {
 public:
  at::Tensor input(int, int) const override { return kept; }
  at::Tensor kept = at::zeros({100}, at::kLong);
};

TEST_CASE("Memory that a read allocated is charged to the taking thread's account once taken",
          "[exec]") {
  const MemoryAccount account;
  const ChargeTo charge(account);
  NotedData data;
  const KeptData kept;
  const auto before = account.held();
  ReadAhead reader(2);
  auto all = readings(data, 0, 1, 2);
  all.push_back({&kept, 0, 0, true, false});
  reader.expect(all);
  data.await_begun(2);
  CHECK(account.held() == before);
  {
    const ReadData first = reader.take(all[0]);
    CHECK((account.held() - before).value == 32);  // four numbers of eight bytes
    const ReadData second = reader.take(all[1]);
    CHECK((account.held() - before).value == 64);
    const ReadData third = reader.take(all[2]);
    CHECK((account.held() - before).value == 64);
  }
  CHECK(account.held() == before);
}

}  // namespace read_ahead_test
