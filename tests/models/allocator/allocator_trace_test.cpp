#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "pipewright/models/allocator/caching_allocator.hpp"
#include "pipewright/plan/json/json.hpp"
#include "support/catch.hpp"

/// The trace of LibTorch's allocator on a GPU, compared with our model: the same segments in the
/// same order, each tensor at the same place, the same peaks (tests/data/gpu/README.md).
namespace allocator_trace_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using Block = CachingAllocator::Block;

/// A row of a trace. A block is available to others from `free_completed` on.
struct Entry {
  std::string action;
  std::int64_t address = 0, bytes = 0;
  int stream = 0;
  friend bool operator==(const Entry&, const Entry&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Entry& entry) {
    return out << entry.action << ' ' << entry.address << ' ' << entry.bytes << ' ' << entry.stream;
  }
};
using Entries = std::vector<Entry>;

std::string unzipped(const std::filesystem::path& file) {
  std::string text, part(1 << 16, '\0');
  gzFile opened = gzopen(file.c_str(), "rb");
  REQUIRE(opened != nullptr);
  for (int size = 1; size > 0; text.append(part, 0, static_cast<std::size_t>(size)))
    size = gzread(opened, part.data(), static_cast<unsigned>(part.size()));
  gzclose(opened);
  return text;
}

struct Trace {
  std::filesystem::path file;
  Entries entries;
  Json stats;  // null: the trace has none
};

void add_entries(Trace& trace, const Json& rows) {
  for (const Json& row : rows)
    if (const Entry entry{row[0], row[1], row[2], row[3]}; entry.action != "free_requested")
      trace.entries.push_back(entry);
}

std::vector<Trace> recorded_traces() {
  std::vector<Trace> all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(PIPEWRIGHT_TEST_DATA_DIR "/gpu")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("allocator") || !name.ends_with(".json.gz"))
      continue;
    const Json read = Json::parse(unzipped(entry.path()));
    Trace& trace = all.emplace_back(Trace{.file = entry.path(), .entries = {}, .stats = {}});
    add_entries(trace, read.value("before", Json::array()));
    add_entries(trace, read["entries"]);
    trace.stats = read.value("stats", Json());
  }
  return all;
}

/// Places segments at the trace's addresses, and checks that they are those of the trace. In a
/// trace, the result follows each request, and a new segment precedes the request that needed it.
class TraceReplay : SegmentSource {
 public:
  void run(const Entries& entries) {
    for (auto at = entries.begin(); at != entries.end(); ++at)
      if (at->action == "segment_alloc")
        expected_.push_back(*at);
      else if (at->action == "segment_free")
        at = empty_cache(at, entries.end());
      else if (at->action == "alloc")
        allocate(*at);
      else
        free(*at);
  }
  const AllocatorCounters& counters() const { return allocator_.counters(); }

 private:
  std::int64_t take(std::int64_t bytes, int stream) override {
    REQUIRE(expected_.size() == 1);
    const std::int64_t address = expected_.front().address;
    done_.push_back({"segment_alloc", address, bytes, stream});
    return address;
  }
  void give_back(std::int64_t address, std::int64_t bytes, int stream) override {
    done_.push_back({"segment_free", address, bytes, stream});
  }

  void compare() {
    REQUIRE(done_ == expected_);
    done_.clear(), expected_.clear();
  }
  void allocate(const Entry& entry) {
    CAPTURE(entry);
    Block* block = allocator_.allocate(entry.bytes, entry.stream);
    compare();
    REQUIRE(CachingAllocator::address_of(block) == entry.address);
    REQUIRE(blocks_.emplace(entry.address, block).second);
  }
  void free(const Entry& entry) {
    CAPTURE(entry);
    REQUIRE(entry.action == "free_completed");
    allocator_.free(blocks_.at(entry.address));
    blocks_.erase(entry.address);
  }
  Entries::const_iterator empty_cache(Entries::const_iterator from, Entries::const_iterator end) {
    const auto to =
        std::find_if(from, end, [](const Entry& each) { return each.action != "segment_free"; });
    expected_.assign(from, to);
    allocator_.empty_cache();
    compare();
    return to - 1;
  }

  CachingAllocator allocator_{{.source = this}};
  std::map<std::int64_t, Block*> blocks_;  // by address
  Entries expected_, done_;                // segment events
};

/// Replays without the driver's segment addresses, as in all our predictions.
AllocatorCounters from_sizes_alone(const Entries& entries) {
  CachingAllocator allocator;
  std::map<std::int64_t, Block*> blocks;
  std::string before;
  for (const Entry& entry : entries) {
    if (entry.action == "alloc")
      blocks[entry.address] = allocator.allocate(entry.bytes, entry.stream);
    else if (entry.action == "free_completed")
      allocator.free(blocks.at(entry.address));
    else if (entry.action == "segment_free" && before != entry.action)
      allocator.empty_cache();
    before = entry.action;
  }
  return allocator.counters();
}

void check_peaks(const AllocatorCounters& counters, const Json& stats) {
  CHECK(counters.peak_allocated == stats["allocated_bytes.all.peak"]);
  CHECK(counters.peak_reserved == stats["reserved_bytes.all.peak"]);
  CHECK(counters.peak_inactive_split == stats["inactive_split_bytes.all.peak"]);
  CHECK(counters.retries == stats["num_alloc_retries"]);
}

void check_counters(const AllocatorCounters& counters, const Json& stats) {
  check_peaks(counters, stats);
  CHECK(counters.allocated == stats["allocated_bytes.all.current"]);
  CHECK(counters.reserved == stats["reserved_bytes.all.current"]);
  CHECK(counters.inactive_split == stats["inactive_split_bytes.all.current"]);
}

TEST_CASE("LibTorch's allocator on a GPU: segments, places and peaks equal its own trace",
          "[plan][allocator]") {
  const std::vector<Trace> traces = recorded_traces();
  CHECK(traces.size() >= 3);
  for (const Trace& trace : traces) {
    INFO(trace.file);
    TraceReplay replay;
    replay.run(trace.entries);
    if (!trace.stats.is_null())
      check_counters(replay.counters(), trace.stats);
  }
}

TEST_CASE("LibTorch's allocator on a GPU: peaks follow from sizes alone", "[plan][allocator]") {
  std::size_t compared = 0;
  for (const Trace& trace : recorded_traces()) {
    if (trace.stats.is_null())
      continue;
    INFO(trace.file);
    check_peaks(from_sizes_alone(trace.entries), trace.stats);
    ++compared;
  }
  CHECK(compared >= 2);
}

}  // namespace allocator_trace_test
