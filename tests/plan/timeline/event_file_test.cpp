#include "pipewright/plan/timeline/event_file.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/event_file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::plan::event_file_test {

using test::error_of;
using test::TempFolder;
using test::with_element;
using test::with_right_checksums;

std::uint64_t xxh64_of(std::string_view text) { return xxh64(std::as_bytes(std::span(text))); }

EventTable two_ranks() {
  EventTable table = table_of({.name = "predicted",
                               .ranks = 2,
                               .length = {5},
                               .spans = {{0, Row::Compute, "0F0", {0}, {1}},
                                         {0, Row::Compute, "0F1", {1}, {2}},
                                         {0, Row::Send, "0SEND_F0", {1}, {3}},
                                         {1, Row::Compute, "1F0", {3}, {4.5}}},
                               .memory = {{0, {0}, {3}}, {0, {2}, {5}}, {1, {0}, {7}}},
                               .idle = {{1, IdleCause::WarmUp, {0}, {3}}},
                               .critical = {0, 2, 3}});
  table.rank_names = {"trainer", "übung"};
  table.tracks[1].depth = 2;
  return table;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string written(const EventTable& table) {
  const TempFolder folder;
  write_event_file(folder.path() / "t.pwt", table);
  return bytes_of(folder.path() / "t.pwt");
}

/// Returns the error message for a file of these bytes, without the file's name.
std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  const auto file = folder.write("t.pwt", bytes);
  try {
    read_event_file(file);
  } catch (const MalformedFile& error) {
    const std::string what = error.what();
    CHECK(what.starts_with(file.string() + ": "));
    return what.substr(file.string().size() + 2);
  }
  return "no error";
}

TEST_CASE("Checksum: XXH64 gives the published values", "[plan][timeline]") {
  CHECK(xxh64_of("") == 0xef46db3751d8e999);
  CHECK(xxh64_of("a") == 0xd24ec4f1a98c6e5b);
  CHECK(xxh64_of("abc") == 0x44bc2cf5ad770999);
  CHECK(xxh64_of("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1);
}

TEST_CASE("Event file: a table reads back as it was written", "[plan][timeline]") {
  const TempFolder folder;
  const EventTable table = two_ranks();
  write_event_file(folder.path() / "t.pwt", table);
  const EventTable again = read_event_file(folder.path() / "t.pwt");
  CHECK(timeline_of(again) == timeline_of(table));
  CHECK(again.names == table.names);
  CHECK(again.rank_names == table.rank_names);
  CHECK(again.tracks == table.tracks);
  CHECK(std::vector(again.memory_begins.begin(), again.memory_begins.end()) ==
        std::vector<std::uint64_t>{0, 2, 3});
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("Event file: a table without events is valid", "[plan][timeline]") {
  const TempFolder folder;
  write_event_file(folder.path() / "t.pwt", table_of(Timeline{"empty", 3, {1}, {}, {}}));
  CHECK(timeline_of(read_event_file(folder.path() / "t.pwt")).ranks == 3);
}

TEST_CASE("Event file: columns remain when the file is removed", "[plan][timeline]") {
  EventTable table;
  {
    const TempFolder folder;
    write_event_file(folder.path() / "t.pwt", two_ranks());
    table = read_event_file(folder.path() / "t.pwt");
    write_event_file(folder.path() / "t.pwt", table);  // from the mapping of the file itself
  }
  CHECK(timeline_of(table) == timeline_of(two_ranks()));
}

TEST_CASE("Event file: truncation at any byte is reported as such", "[plan][timeline]") {
  const std::string bytes = written(two_ranks());
  std::size_t other = 0;
  for (std::size_t size = 1; size < bytes.size(); ++size)
    other += refusal(bytes.substr(0, size)).find("cut off after") == std::string::npos ? 1 : 0;
  CHECK(other == 0);
  CHECK(refusal(bytes.substr(0, bytes.size() - 8)) ==
        "cut off after " + std::to_string(bytes.size() - 8) + " of " +
            std::to_string(bytes.size()) + " bytes");
  CHECK(refusal(bytes + "!!") == "2 bytes after its end");
}

TEST_CASE("Event file: every changed bit is detected", "[plan][timeline]") {
  const std::string bytes = written(two_ranks());
  std::size_t unnoticed = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    unnoticed += refusal(damaged) == "no error" ? 1 : 0;
  }
  CHECK(unnoticed == 0);
  std::string damaged = bytes;
  damaged[test::number_in<std::uint64_t>(bytes, test::event_file_row(3) + 8)] ^= 1;
  CHECK(refusal(damaged).find("starts: damaged: the checksum of these 32 bytes differs") !=
        std::string::npos);
}

TEST_CASE("Event file: a foreign file is reported as such", "[plan][timeline]") {
  CHECK(refusal("").find("not a Pipewright timeline file") == 0);
  CHECK(refusal("{\"traceEvents\":[]}").find("not a Pipewright timeline file") == 0);
  std::string bytes = written(two_ranks());
  bytes[8] = 7;
  CHECK(refusal(bytes) == "byte 8: version 7 of the format; this program reads version 1");
  bytes = written(two_ranks());
  std::swap(bytes[12], bytes[15]);
  std::swap(bytes[13], bytes[14]);
  CHECK(refusal(bytes) == "byte 12: numbers in the other byte order");
  CHECK(error_of([] { read_event_file("/nowhere/t.pwt"); }) ==
        "/nowhere/t.pwt: cannot be read: No such file or directory");
  CHECK(error_of([] { read_event_file("/"); }).find("not a regular file") != std::string::npos);
}

TEST_CASE("Event file: the guarantees for painting are checked even if checksums are right",
          "[plan][timeline]") {
  const std::string bytes = written(two_ranks());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto holds = [](const std::string& message, const std::string& part) {
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  CHECK(refusal(with_right_checksums(bytes)) == "no error");
  holds(refusal(with_element(bytes, 1, 2, std::uint64_t{1000})), "ends of texts: text 2 is from");
  holds(refusal(with_element(bytes, 0, 0, '\xff')), "text 0 is not UTF-8");
  holds(refusal(with_element(bytes, 2, 0, std::uint64_t{1})), "track 0 has events 1 to 2");
  holds(refusal(with_element(bytes, 2, 9, std::uint64_t{9})), "track 2 has events 3 to 9");
  holds(refusal(with_element(bytes, 2, 4, std::int32_t{2})), "track 0 is of rank 2 of 2");
  holds(refusal(with_element(bytes, 2, 4, std::int32_t{1})), "track 1 comes before");
  holds(refusal(with_element(bytes, 2, 5, std::uint32_t{4})), "track 0 is of row 4");
  holds(refusal(with_element(bytes, 2, 6, std::int32_t{-1})), "track 0 lies -1 deep");
  holds(refusal(with_element(bytes, 3, 1, 0.5)), "starts: event 1 is from 0.5 s");
  holds(refusal(with_element(bytes, 3, 0, nan)), "event 0 is from nan s");
  holds(refusal(with_element(bytes, 3, 0, -1.0)), "event 0 is from -1 s");
  holds(refusal(with_element(bytes, 4, 3, infinite)), "event 3 is from 3 s to inf s");
  holds(refusal(with_element(bytes, 4, 3, nan)), "event 3 is from 3 s to nan s");
  holds(refusal(with_element(bytes, 5, 1, std::uint32_t{4})), "event 1 has name 4 of 4");
  holds(refusal(with_element(bytes, 6, 0, std::uint64_t{4})), "event 4 of 4 is on the critical");
  holds(refusal(with_element(bytes, 7, 0, 4.0)), "idle time 0 is from 4 s to 3 s");
  holds(refusal(with_element(bytes, 7, 4, std::int32_t{2})), "idle time 0 is of rank 2 of 2");
  holds(refusal(with_element(bytes, 7, 5, std::uint32_t{8})), "idle time 0 has cause 8");
  holds(refusal(with_element(bytes, 8, 2, -1.0)), "sample 1 has 5 bytes at -1 s");
  holds(refusal(with_element(bytes, 8, 0, 3.0)), "sample 1 has 5 bytes at 2 s, after one at 3 s");
  holds(refusal(with_element(bytes, 9, 1, std::uint64_t{9})), "samples of rank 1 from 9 to 3");
  holds(refusal(with_element(bytes, 9, 2, std::uint64_t{2})), "bounds for the 3 samples");
}

TEST_CASE("Event file: a table that could not be read back is not written", "[plan][timeline]") {
  const TempFolder folder;
  const auto file = folder.path() / "t.pwt";
  EventTable table = two_ranks();
  table.tracks[0].end = 3;
  table.tracks[1].begin = 3;
  CHECK(error_of([&] { write_event_file(file, table); }).find("not written: event 2 is from 1 s") !=
        std::string::npos);
  table = two_ranks();
  table.tracks[1].begin = 1;
  CHECK(error_of([&] { write_event_file(file, table); }).find("not written: track 1 has events") !=
        std::string::npos);
  table = two_ranks();
  table.name = "\xc3";
  CHECK(error_of([&] { write_event_file(file, table); }).find("not UTF-8") != std::string::npos);
}

}  // namespace pipewright::plan::event_file_test
