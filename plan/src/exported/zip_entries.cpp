#include "pipewright/plan/exported/zip_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

constexpr std::uint64_t directory_end = 0x06054b50, wide_end = 0x06064b50,
                        wide_locator = 0x07064b50, directory_entry = 0x02014b50,
                        local_entry = 0x04034b50;

class ZipArchive {
 public:
  ZipArchive(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::vector<ZipEntry> entries() const {
    Directory directory = find_directory();
    std::vector<ZipEntry> entries;
    std::set<std::string> names;
    std::uint64_t at = directory.begin;
    for (std::uint64_t entry = 0; entry < directory.count; ++entry) {
      entries.push_back(read_entry(at));
      if (!names.insert(entries.back().name).second)
        refuse(fmt::format("it has two entries '{}'", entries.back().name));
    }
    return entries;
  }

 private:
  struct Directory {
    std::uint64_t count = 0;
    std::uint64_t begin = 0;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(fmt::format("{}: {}", file_, what));
  }

  /// Reads a little-endian number of `width` bytes.
  std::uint64_t number(std::uint64_t at, unsigned width) const {
    if (at > bytes_.size() || bytes_.size() - at < width)
      refuse(fmt::format("its archive is truncated at byte {}", bytes_.size()));
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
    return value;
  }

  /// Finds the end-of-directory record, which has 22 bytes and is followed by a comment.
  std::uint64_t find_end() const {
    constexpr std::uint64_t size = 22, longest_comment = 65535;
    for (std::uint64_t back = size; back <= bytes_.size() && back <= size + longest_comment;
         ++back) {
      const std::uint64_t at = bytes_.size() - back;
      if (number(at, 4) == directory_end && number(at + 20, 2) == back - size)
        return at;
    }
    refuse("it is not a zip archive, or is truncated: no directory at its end");
  }

  Directory find_directory() const {
    const std::uint64_t end = find_end();
    Directory directory{number(end + 10, 2), number(end + 16, 4)};
    if (directory.count != 0xffff && directory.begin != 0xffffffff)
      return directory;
    if (end < 20 || number(end - 20, 4) != wide_locator)
      refuse("the end of its directory refers to Zip64 records, which are missing");
    const std::uint64_t wide = number(end - 12, 8);
    if (wide > bytes_.size() || number(wide, 4) != wide_end)
      refuse(fmt::format("no directory of Zip64 at byte {}", wide));
    return {number(wide + 32, 8), number(wide + 48, 8)};
  }

  /// Reads the entry at `at` and moves `at` to the next entry.
  ZipEntry read_entry(std::uint64_t& at) const {
    if (number(at, 4) != directory_entry)
      refuse(fmt::format("no entry of its directory at byte {}", at));
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    std::uint64_t packed = number(at + 20, 4), size = number(at + 24, 4);
    const std::uint64_t name_size = number(at + 28, 2), extra_size = number(at + 30, 2);
    std::uint64_t local = number(at + 42, 4);
    const std::uint64_t name_at = at + 46, extra_at = name_at + name_size;
    at = extra_at + extra_size + number(at + 32, 2);
    if (at > bytes_.size())
      refuse(fmt::format("its archive is truncated at byte {}", bytes_.size()));
    std::string name(bytes_.substr(name_at, name_size));
    read_wide(extra_at, extra_size, {&size, &packed, &local});
    if ((flags & 1) != 0 || method != 0 || packed != size)
      refuse(fmt::format("'{}' is compressed or encrypted: torch.save does neither", name));
    return placed(std::move(name), local, size);
  }

  /// Reads Zip64 numbers. Numbers that do not fit into an entry are in its extra field 1, in this
  /// order.
  void read_wide(std::uint64_t at, std::uint64_t size,
                 std::initializer_list<std::uint64_t*> numbers) const {
    const std::uint64_t end = at + size;
    while (at + 4 <= end) {
      const std::uint64_t kind = number(at, 2), length = number(at + 2, 2);
      at += 4;
      if (kind == 1)
        for (std::uint64_t* const wide : numbers)
          if (*wide == 0xffffffff && at + 8 <= end) {
            *wide = number(at, 8);
            at += 8;
          }
      if (kind == 1)
        return;
      at += length;
    }
  }

  ZipEntry placed(std::string name, std::uint64_t local, std::uint64_t size) const {
    if (local > bytes_.size() || number(local, 4) != local_entry)
      refuse(fmt::format("'{}' is not at byte {}, where its directory has it", name, local));
    const std::uint64_t begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    if (begin > bytes_.size() || size > bytes_.size() - begin)
      refuse(fmt::format("'{}' takes {} bytes from {} on, the file has {}", name, size, begin,
                         bytes_.size()));
    return {std::move(name), static_cast<std::int64_t>(begin),
            static_cast<std::int64_t>(begin + size)};
  }

  std::string_view bytes_;
  const std::string& file_;
};

}  // namespace

std::vector<ZipEntry> zip_entries(std::string_view bytes, const std::string& file) {
  return ZipArchive(bytes, file).entries();
}

}  // namespace pipewright::plan
