#include "pipewright/plan/timeline/event_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "mapping.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "timeline/event_table_fault.hpp"
#include "timeline/xxh64.hpp"

namespace pipewright::plan {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are mapped as they lie");

// The first byte is not text, and the line ends reveal a transfer in text mode.
constexpr std::string_view magic = "\x89PWT\r\n\x1a\n";
constexpr std::uint32_t version = 1;
constexpr std::uint32_t byte_order = 0x01020304;
constexpr std::uint64_t alignment = 64;

struct FileHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t byte_order = 0;
  std::uint64_t size = 0;      // of the file
  std::uint64_t checksum = 0;  // of the header, with 0 in this field, and of the table of sections
  std::uint32_t sections = 0;
  std::int32_t ranks = 0;
  double length = 0;             // seconds
  std::uint32_t names = 0;       // of events
  std::uint32_t rank_names = 0;  // 0, or the number of ranks
  std::array<char, 8> reserved{};
};

struct FileSection {
  std::uint32_t kind = 0;          // index in EventSection
  std::uint32_t element_size = 0;  // bytes
  std::uint64_t offset = 0;        // from the beginning of the file
  std::uint64_t size = 0;          // bytes
  std::uint64_t checksum = 0;
};

struct FileTrack {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int32_t rank = 0;
  std::uint32_t row = 0;
  std::int32_t depth = 0;
  std::uint32_t reserved = 0;
};

/// Everything before the first section.
struct FileFront {
  FileHeader header;
  std::array<FileSection, event_sections> sections;
};

static_assert(sizeof(FileHeader) == 64 && sizeof(FileSection) == 32 && sizeof(FileTrack) == 32);
static_assert(sizeof(FileFront) == 384 && sizeof(FileFront) % alignment == 0);
static_assert(sizeof(EventTable::Idle) == 24 && sizeof(EventTable::Memory) == 16);

struct SectionTraits {
  EventSection section;
  const char* name;  // for messages
  std::uint32_t element_size;
};

constexpr auto section_traits = std::to_array<SectionTraits>({
    {EventSection::Texts, "texts", 1},
    {EventSection::TextEnds, "ends of texts", 8},
    {EventSection::Tracks, "tracks", sizeof(FileTrack)},
    {EventSection::Start, "starts", 8},
    {EventSection::End, "ends", 8},
    {EventSection::NameOf, "names of events", 4},
    {EventSection::Critical, "critical path", 8},
    {EventSection::Idle, "idle time", sizeof(EventTable::Idle)},
    {EventSection::Memory, "memory", sizeof(EventTable::Memory)},
    {EventSection::MemoryBegins, "memory by rank", 8},
});
static_assert(section_traits.size() == event_sections);

std::uint64_t aligned_offset(std::uint64_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

std::uint64_t checksum_of(FileFront front) {
  front.header.checksum = 0;
  return xxh64(std::as_bytes(std::span(&front, 1)));
}

// ---- reading

/// Maps a file, checks it, and builds the table.
class EventFileReader {
 public:
  explicit EventFileReader(const std::filesystem::path& file)
      : file_(file),
        mapping_(std::make_shared<Mapping>(file, Mapping::Pages::AtOnce)),
        bytes_(mapping_->bytes()) {}

  EventTable read() {
    read_front();
    for (const SectionTraits& traits : section_traits)
      check(traits);
    EventTable table{.name = {}, .ranks = front_.header.ranks, .length = {front_.header.length}};
    read_tracks(table);
    read_texts(table);
    table.start = column<double>(EventSection::Start);
    table.end = column<double>(EventSection::End);
    table.name_of = column<std::uint32_t>(EventSection::NameOf);
    table.critical = column<std::uint64_t>(EventSection::Critical);
    table.idle = column<EventTable::Idle>(EventSection::Idle);
    table.memory = column<EventTable::Memory>(EventSection::Memory);
    table.memory_begins = column<std::uint64_t>(EventSection::MemoryBegins);
    if (const auto fault = fault_of(table))
      refuse(fault->section, fault->element, fault->what);
    table.storage = mapping_;
    return table;
  }

 private:
  const FileSection& section(EventSection which) const {
    return front_.sections[static_cast<std::size_t>(which)];
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw MalformedFile(fmt::format("{}: {}", file_.string(), what));
  }
  [[noreturn]] void refuse_at(std::uint64_t offset, const std::string& what) const {
    refuse(fmt::format("byte {}: {}", offset, what));
  }
  [[noreturn]] void refuse(std::optional<EventSection> which, std::uint64_t element,
                           const std::string& what) const {
    if (!which)
      refuse_at(0, "header: " + what);
    const SectionTraits& traits = section_traits[static_cast<std::size_t>(*which)];
    refuse_at(section(*which).offset + element * traits.element_size,
              fmt::format("{}: {}", traits.name, what));
  }

  void read_front() {
    const auto beginning = std::string_view(reinterpret_cast<const char*>(bytes_.data()),
                                            std::min(bytes_.size(), magic.size()));
    if (beginning != magic) {
      if (!beginning.empty() && magic.starts_with(beginning))
        refuse(fmt::format("cut off after {} bytes", bytes_.size()));
      refuse("not a Pipewright timeline file: it has a wrong beginning");
    }
    std::memcpy(&front_, bytes_.data(), std::min(bytes_.size(), sizeof front_));
    const FileHeader& header = front_.header;
    if (bytes_.size() >= offsetof(FileHeader, size)) {
      if (header.byte_order == __builtin_bswap32(byte_order))
        refuse_at(offsetof(FileHeader, byte_order), "numbers in the other byte order");
      if (header.version != version)
        refuse_at(offsetof(FileHeader, version),
                  fmt::format("version {} of the format; this program reads version {}",
                              header.version, version));
    }
    if (bytes_.size() < sizeof front_)
      refuse(fmt::format("cut off after {} bytes", bytes_.size()));
    if (header.checksum != checksum_of(front_))
      refuse_at(0, "the header is damaged: its checksum differs");
    if (header.byte_order != byte_order || header.sections != event_sections)
      refuse_at(0,
                fmt::format("header: {} sections, {} are needed", header.sections, event_sections));
    if (bytes_.size() != header.size)
      refuse(bytes_.size() < header.size
                 ? fmt::format("cut off after {} of {} bytes", bytes_.size(), header.size)
                 : fmt::format("{} bytes after its end", bytes_.size() - header.size));
    check_places();
  }

  /// Checks that the sections follow each other and that the last one ends with the file.
  void check_places() const {
    std::uint64_t end = sizeof(FileFront);
    for (std::size_t i = 0; i < event_sections; ++i) {
      const FileSection& place = front_.sections[i];
      const SectionTraits& traits = section_traits[i];
      const auto refuse_place = [&](const std::string& what) {
        refuse_at(sizeof(FileHeader) + i * sizeof(FileSection),
                  fmt::format("{}: {}", traits.name, what));
      };
      if (place.kind != i || place.element_size != traits.element_size)
        refuse_place(fmt::format("a section of kind {} with elements of {} bytes, not {} and {}",
                                 place.kind, place.element_size, i, traits.element_size));
      if (place.offset != aligned_offset(end) || place.offset > bytes_.size() ||
          place.size > bytes_.size() - place.offset || place.size % traits.element_size != 0)
        refuse_place(fmt::format("{} bytes from byte {} cannot be in {} bytes", place.size,
                                 place.offset, bytes_.size()));
      const auto gap = bytes_.subspan(end, place.offset - end);
      if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{}; }))
        refuse_at(end,
                  fmt::format("damaged: {} bytes before {} are not 0", gap.size(), traits.name));
      end = place.offset + place.size;
    }
    if (end != bytes_.size())
      refuse(fmt::format("{} bytes after the last section", bytes_.size() - end));
  }

  void check(const SectionTraits& traits) const {
    const FileSection& place = section(traits.section);
    if (xxh64(bytes_.subspan(place.offset, place.size)) != place.checksum)
      refuse(traits.section, 0,
             fmt::format("damaged: the checksum of these {} bytes differs", place.size));
  }

  /// Returns a column without copying it. The mapping starts at a page boundary, so it is aligned.
  template <class Element>
  std::span<const Element> column(EventSection which) const {
    const FileSection& place = section(which);
    return {reinterpret_cast<const Element*>(bytes_.data() + place.offset),
            place.size / sizeof(Element)};
  }

  void read_tracks(EventTable& table) const {
    for (const FileTrack& track : column<FileTrack>(EventSection::Tracks)) {
      // fault_of reports an invalid row, so the cast must not turn it into a valid one.
      const auto row = static_cast<Row>(std::min<std::uint32_t>(track.row, 1000));
      table.tracks.push_back({track.rank, row, {}, track.begin, track.end, track.depth});
    }
  }

  void read_texts(EventTable& table) const {
    const auto letters = column<char>(EventSection::Texts);
    const auto ends = column<std::uint64_t>(EventSection::TextEnds);
    const FileHeader& header = front_.header;
    const std::uint64_t texts =
        1 + std::uint64_t{header.names} + header.rank_names + table.tracks.size();
    if (ends.size() != texts)
      refuse(EventSection::TextEnds, 0, fmt::format("{}, but {} texts", ends.size(), texts));
    std::uint64_t begin = 0;
    std::uint64_t text = 0;
    const auto next = [&] {
      const std::uint64_t end = ends[text];
      if (end < begin || end > letters.size())
        refuse(
            EventSection::TextEnds, text,
            fmt::format("text {} is from letter {} to {} of {}", text, begin, end, letters.size()));
      ++text;
      return std::string(letters.data() + std::exchange(begin, end), end - begin);
    };
    table.name = next();
    table.names.resize(header.names);
    table.rank_names.resize(header.rank_names);
    for (std::string& name : table.names)
      name = next();
    for (std::string& name : table.rank_names)
      name = next();
    for (EventTrack& track : table.tracks)
      track.name = next();
    if (begin != letters.size())
      refuse(EventSection::Texts, begin, "letters of no text");
  }

  const std::filesystem::path& file_;
  std::shared_ptr<const Mapping> mapping_;
  std::span<const std::byte> bytes_;
  FileFront front_{};
};

// ---- writing

/// The parts of a table that have another form in the file.
struct Packed {
  std::string texts;
  std::vector<std::uint64_t> text_ends;
  std::vector<FileTrack> tracks;

  explicit Packed(const EventTable& table) {
    add(table.name);
    for (const std::string& name : table.names)
      add(name);
    for (const std::string& name : table.rank_names)
      add(name);
    for (const EventTrack& track : table.tracks) {
      add(track.name);
      tracks.push_back(
          {track.begin, track.end, track.rank, static_cast<std::uint32_t>(track.row), track.depth});
    }
  }

 private:
  void add(const std::string& text) {
    texts += text;
    text_ends.push_back(texts.size());
  }
};

std::string_view letters_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the header and the section table, with offsets and checksums.
FileFront front_of(const EventTable& table,
                   const std::array<std::span<const std::byte>, event_sections>& contents) {
  FileFront front;
  std::uint64_t end = sizeof front;
  for (std::size_t i = 0; i < event_sections; ++i) {
    front.sections[i] = {static_cast<std::uint32_t>(i), section_traits[i].element_size,
                         aligned_offset(end), contents[i].size(), xxh64(contents[i])};
    end = front.sections[i].offset + contents[i].size();
  }
  FileHeader& header = front.header;
  std::copy(magic.begin(), magic.end(), header.magic.begin());
  header.version = version;
  header.byte_order = byte_order;
  header.size = end;
  header.sections = event_sections;
  header.ranks = table.ranks;
  header.length = table.length.value;
  header.names = static_cast<std::uint32_t>(table.names.size());
  header.rank_names = static_cast<std::uint32_t>(table.rank_names.size());
  header.checksum = checksum_of(front);
  return front;
}

}  // namespace

void write_event_file(const std::filesystem::path& file, const EventTable& table) {
  if (const auto fault = fault_of(table))
    throw InputError(fmt::format("{}: not written: {}", file.string(), fault->what));
  const Packed packed(table);
  const std::array contents{std::as_bytes(std::span(packed.texts)),
                            std::as_bytes(std::span(packed.text_ends)),
                            std::as_bytes(std::span(packed.tracks)),
                            std::as_bytes(table.start),
                            std::as_bytes(table.end),
                            std::as_bytes(table.name_of),
                            std::as_bytes(table.critical),
                            std::as_bytes(table.idle),
                            std::as_bytes(table.memory),
                            std::as_bytes(table.memory_begins)};
  const FileFront front = front_of(table, contents);

  static constexpr std::array<char, alignment> gap{};
  std::vector<std::string_view> parts{letters_of(std::as_bytes(std::span(&front, 1)))};
  std::uint64_t end = sizeof front;
  for (std::size_t i = 0; i < event_sections; ++i) {
    parts.emplace_back(gap.data(), front.sections[i].offset - end);
    parts.push_back(letters_of(contents[i]));
    end = front.sections[i].offset + contents[i].size();
  }
  write_file(file, parts);
}

EventTable read_event_file(const std::filesystem::path& file) {
  return EventFileReader(file).read();
}

bool is_event_file(std::string_view beginning) {
  // Only the first byte and the letters, because the line ends may have been changed in transit.
  return beginning.starts_with(magic.substr(0, 4));
}

}  // namespace pipewright::plan
