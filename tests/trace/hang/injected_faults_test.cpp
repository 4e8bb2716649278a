// Injects 200 faults into jobs that run Pipewright's schedules: each must be diagnosed with its
// rank and kind.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <random>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/trace/hang/diagnosis.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"
#include "trace/support/played_ranks.hpp"

namespace pipewright::trace::injected_faults_test {

using test::PlayedGroups;
using test::PlayedItem;
using test::PlayedJob;
using test::PlayedRanks;
using Kind = PlayedItem::Kind;

constexpr int steps = 3;

struct Sound {
  std::string name;
  plan::Program program;
  PlayedJob job;
};

/// Returns jobs without faults that run to their end: schedules of several sizes, kinds of groups,
/// and hosts that do or do not wait.
std::vector<Sound> sound_jobs() {
  struct Sizes {
    const char* schedule;
    int ranks, microbatches, chunks;
  };
  std::vector<Sound> all;
  for (const Sizes& own :
       {Sizes{"1f1b", 2, 4, 0}, Sizes{"1f1b", 4, 8, 0}, Sizes{"1f1b", 8, 12, 0},
        Sizes{"gpipe", 2, 3, 0}, Sizes{"gpipe", 4, 6, 0}, Sizes{"interleaved-1f1b", 4, 8, 2},
        Sizes{"interleaved-1f1b", 3, 6, 3}, Sizes{"zb-h1", 4, 8, 0}, Sizes{"zbv", 4, 8, 2},
        Sizes{"dualpipev", 4, 10, 2}, Sizes{"looped-bfs", 4, 4, 2}})
    for (const PlayedGroups groups :
         {PlayedGroups::Pairs, PlayedGroups::Edges, PlayedGroups::Batches})
      for (const bool host_waits : {false, true}) {
        const plan::Program program =
            plan::lower(test::make(own.schedule, own.ranks, own.microbatches, own.chunks));
        PlayedJob job = test::played(program, steps, groups, host_waits);
        if (!PlayedRanks(job).stands_still())
          all.push_back(
              {fmt::format("{} {}x{} groups {}{}", own.schedule, own.ranks, own.microbatches,
                           static_cast<int>(groups), host_waits ? ", hosts wait" : ""),
               program, std::move(job)});
      }
  return all;
}

struct Fault {
  HangKind kind = HangKind::None;
  int rank = 0;
  std::size_t item = 0;
};

/// Returns the items of a rank's last step that `accepts` accepts.
template <class Accepts>
std::vector<std::size_t> items_of(const PlayedJob& job, int rank, const Accepts& accepts) {
  const auto& items = job.ranks[static_cast<std::size_t>(rank)];
  std::vector<std::size_t> found;
  for (std::size_t at = items.size() / steps * (steps - 1); at < items.size(); ++at)
    if (accepts(items[at]))
      found.push_back(at);
  return found;
}
bool is_transfer(const PlayedItem& item) {
  return item.kind == Kind::Send || item.kind == Kind::Receive;
}

using Random = std::mt19937;
std::size_t any_of(Random& random, const std::vector<std::size_t>& places) {
  return places[random() % places.size()];
}

/// Injects a fault of this kind somewhere; returns nothing if there is no suitable place.
std::optional<Fault> inject(PlayedJob& job, HangKind kind, Random& random) {
  Fault fault{kind, static_cast<int>(random() % job.ranks.size())};
  auto& items = job.ranks[static_cast<std::size_t>(fault.rank)];
  const auto transfers = items_of(job, fault.rank, is_transfer);
  const auto collectives = items_of(job, fault.rank, [](const PlayedItem& item) {
    return item.kind == Kind::Collective && item.name == "all_reduce";
  });
  const bool at_collective = random() % 2 == 0;
  switch (kind) {
    case HangKind::Order: {
      const std::size_t k = random() % (transfers.size() - 1);
      fault.item = transfers[k];
      PlayedItem &first = items[transfers[k]], &second = items[transfers[k + 1]];
      if (first.kind == second.kind && first.peer == second.peer)
        return {};
      std::swap(first, second);
      return fault;
    }
    case HangKind::MissingSend:
    case HangKind::MissingReceive: {
      const auto places = items_of(job, fault.rank, [&](const PlayedItem& item) {
        return item.kind == (kind == HangKind::MissingSend ? Kind::Send : Kind::Receive);
      });
      if (places.empty())
        return {};
      fault.item = any_of(random, places);
      items[fault.item] = {};
      return fault;
    }
    case HangKind::Extra: {
      fault.item = any_of(random, transfers);
      items.insert(items.begin() + static_cast<std::ptrdiff_t>(fault.item), items[fault.item]);
      return fault;
    }
    case HangKind::Late:
    case HangKind::Dead:
      fault.item = any_of(random, items_of(job, fault.rank, [](const PlayedItem& item) {
                            return item.kind != Kind::Compute;
                          }));
      job.stops[static_cast<std::size_t>(fault.rank)] = fault.item;
      return fault;
    case HangKind::Collective:
      fault.item = collectives.front();
      if (at_collective)
        items[fault.item].name = "_all_gather_base";
      else
        items[fault.item] = {};  // left out: the rank is in the next collective while the others
                                 // are in this one
      return fault;
    case HangKind::Sizes:
      fault.item = at_collective ? collectives.front() : any_of(random, transfers);
      items[fault.item].sizes.back() *= 2;
      return fault;
    case HangKind::Types:
      fault.item = at_collective ? collectives.front() : any_of(random, transfers);
      items[fault.item].type = "Float";
      return fault;
    case HangKind::None:
    case HangKind::Unknown:
      break;
  }
  return {};
}

/// Returns true if the dumps can identify the fault. If a rank hangs directly at its wrong
/// operation, its dump also fits another fault, because the dump does not show whether a missing
/// operation would come later or never.
bool is_told_by_dumps(const PlayedRanks& played, const PlayedJob& sound, const PlayedJob& job,
                      const Fault& fault) {
  if (fault.kind == HangKind::Late || fault.kind == HangKind::Dead ||
      fault.kind == HangKind::Collective || fault.kind == HangKind::Sizes ||
      fault.kind == HangKind::Types)
    return true;
  const auto ends = [&](const PlayedJob& own) {
    std::vector<std::pair<Kind, int>> all;
    for (const PlayedItem& item : own.ranks[static_cast<std::size_t>(fault.rank)])
      if (is_transfer(item))
        all.emplace_back(item.kind, item.peer);
    return all;
  };
  const auto right = ends(sound), wrong = ends(job);
  const auto parted = std::mismatch(right.begin(), right.end(), wrong.begin(), wrong.end());
  return played.has_issued_all(fault.rank) ||
         played.transfers_issued(fault.rank) >= parted.second - wrong.begin() + 3;
}

/// Returns the dumps by rank.
std::map<int, std::string> dumps_of(const PlayedRanks& played, const PlayedJob& job,
                                    const Fault& fault, Random& random) {
  std::map<int, std::string> dumps;
  const bool is_ring = random() % 2 == 0, times_kernels = random() % 2 == 0;
  for (int rank = 0; rank < static_cast<int>(job.ranks.size()); ++rank) {
    // A ring buffer holds more than a step, but a different number of entries on each rank.
    const std::size_t step = job.ranks[static_cast<std::size_t>(rank)].size() / steps;
    const std::size_t most = is_ring ? step * 3 / 2 + random() % 5 : 100'000;
    if (fault.kind != HangKind::Dead || rank != fault.rank)
      dumps[rank] = played.dump(rank, most, times_kernels);
  }
  return dumps;
}

std::vector<FlightRecord> records_of(const std::map<int, std::string>& dumps) {
  std::vector<FlightRecord> records;
  for (const auto& [rank, dump] : dumps)
    records.push_back(parse_flight_record(dump, fmt::format("nccl_trace_rank_{}", rank), rank));
  return records;
}

/// Number of correctly diagnosed faults of one kind.
struct Score {
  int named = 0, all = 0;
};

TEST_CASE("200 injected faults are diagnosed with rank and kind", "[loop][hang]") {
  const std::vector<Sound> jobs = sound_jobs();
  REQUIRE(jobs.size() >= 30);
  const std::vector<HangKind> kinds{
      HangKind::Order, HangKind::MissingSend, HangKind::MissingReceive, HangKind::Late,
      HangKind::Dead,  HangKind::Collective,  HangKind::Sizes,          HangKind::Types};
  Random random(std::getenv("SEED") ? std::stoul(std::getenv("SEED")) : 20260);
  std::map<HangKind, Score> with, without;
  int named = 0, faults = 0, named_without = 0, tries = 0;
  double seconds = 0;
  std::string wrong;
  while (faults < 200) {
    REQUIRE(++tries < 20'000);
    const Sound& sound = jobs[random() % jobs.size()];
    const HangKind kind = kinds[static_cast<std::size_t>(faults) % kinds.size()];
    PlayedJob job = sound.job;
    const auto fault = inject(job, kind, random);
    if (!fault)
      continue;
    const PlayedRanks played(job);
    if (!played.stands_still() || !is_told_by_dumps(played, sound.job, job, *fault))
      continue;
    ++faults;
    const auto dumps = dumps_of(played, job, *fault, random);
    const auto begin = std::chrono::steady_clock::now();
    const auto records = records_of(dumps);
    const HangDiagnosis own = diagnose_hang(records, {sound.program});
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool is_named = own.kind == kind && own.rank == fault->rank;
    named += is_named ? 1 : 0;
    with[kind].named += is_named ? 1 : 0;
    ++with[kind].all;
    if (!is_named)
      wrong += fmt::format("{}: {} of rank {} (item {}) is called {} of rank {}: {}\n", sound.name,
                           to_string(kind), fault->rank, fault->item, to_string(own.kind), own.rank,
                           own.what);
    CHECK(!own.waits.empty());
    // Without the schedule, it is unknown which of the ranks that wait for each other is at fault.
    const HangDiagnosis alone = diagnose_hang(records);
    const bool is_named_alone = alone.kind == kind && alone.rank == fault->rank;
    named_without += is_named_alone ? 1 : 0;
    without[kind].named += is_named_alone ? 1 : 0;
  }
  std::printf("%d of 200 named with their schedule, %d without, in %.2f s\n", named, named_without,
              seconds);
  for (const auto& [kind, score] : with)
    std::printf("  %-16s %d of %d, without schedule %d\n", to_string(kind).c_str(), score.named,
                score.all, without[kind].named);
  INFO(wrong);
  CHECK(named >= 190);
  CHECK(named_without >= 150);
}

}  // namespace pipewright::trace::injected_faults_test
