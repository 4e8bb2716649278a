#include "chrome/chrome_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chrome/text_window.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

/// Reads one file, from its first character on.
class ChromeFileReader {
 public:
  ChromeFileReader(const std::filesystem::path& file, ChromeFile& header, ProblemList& problems,
                   ChromeEventParser& parser, const ChromeEventParser::Take& take)
      : window_(file), header_(header), problems_(problems), parser_(parser), take_(take) {}

  void read() {
    if (window_.peek() == '\xef')
      window_.drop(3);  // byte order mark
    window_.skip_space();
    const auto first = window_.peek();
    if (first != '[' && first != '{')
      refuse(
          "not a Chrome trace: expected a JSON list of events, or an object with such a list as "
          "\"traceEvents\"");
    window_.drop(1);
    if (first == '[')
      read_list(/*may_stay_open=*/true);
    else
      read_object();
    if (!window_.failure().empty())
      problems_.note(
          fmt::format("byte {}: {}: only what precedes it is shown", end(), window_.failure()));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) {
    const std::string& file = header_.name;
    throw plan::MalformedFile(window_.failure().empty()
                                  ? fmt::format("{}: {}", file, what)
                                  : fmt::format("{}: byte {}: {}", file, end(), window_.failure()));
  }
  std::uint64_t end() { return window_.offset() + window_.size(); }
  void cut_off() {
    if (window_.failure().empty())
      problems_.note(
          fmt::format("byte {}: the file is cut off: only what precedes it is shown", end()));
  }

  /// Reads the events; returns true if the file continues after the list.
  bool read_list(bool may_stay_open) {
    ObjectList list(window_);
    const auto skip = [&](std::uint64_t offset, std::string_view why) {
      problems_.skipped(offset, why);
    };
    while (true) {
      const auto& places = list.next();
      parser_.read(window_, places, take_, skip);
      for (const ObjectList::Fault& fault : list.faults())
        skip(fault.offset, fault.why);
      if (places.empty())
        break;
    }
    if (list.unfinished() || (!list.closed() && !may_stay_open))
      cut_off();
    return list.closed();
  }

  /// Reads the members of the object that contains the list.
  void read_object() {
    bool has_events = false;
    while (true) {
      window_.skip_space();
      const auto letter = window_.peek();
      if (letter == '}')
        break;
      if (letter == ',') {
        window_.drop(1);
        continue;
      }
      if (letter != '"') {
        if (letter)
          problems_.note(fmt::format("byte {}: invalid JSON: only what precedes it is shown",
                                     window_.offset()));
        else
          cut_off();
        break;
      }
      const std::string key = text(most_kept);
      window_.skip_space();
      if (window_.peek() == ':')
        window_.drop(1);
      window_.skip_space();
      if (key == "\"traceEvents\"" && window_.peek() == '[') {
        window_.drop(1);
        has_events = true;
        if (!read_list(/*may_stay_open=*/false))
          break;
      } else {
        take_member(key, value(key == distributed_info ? most_of_groups : most_kept));
      }
    }
    if (!has_events)
      refuse("not a Chrome trace: it has no list \"traceEvents\"");
  }

  static constexpr std::size_t most_kept = std::size_t{1} << 16U;  // bytes of one value
  static constexpr std::size_t most_of_groups = std::size_t{1}
                                                << 22U;  // enough for thousands of ranks
  static constexpr std::string_view distributed_info = "\"distributedInfo\"";

  /// Moves the next character to the end of `kept`, until `kept` has `most` characters.
  void keep(std::string& kept, std::size_t most) {
    if (kept.size() < most)
      kept += *window_.peek();
    window_.drop(1);
  }

  /// Reads a text with its quotes.
  std::string text(std::size_t most) {
    std::string kept;
    keep(kept, most);
    while (const auto letter = window_.peek()) {
      keep(kept, most);
      if (letter == '"')
        break;
      if (letter == '\\' && window_.peek())
        keep(kept, most);
    }
    return kept;
  }

  /// Reads a whole value, and returns at most its first `most` characters.
  std::string value(std::size_t most) {
    std::string kept;
    int depth = 0;
    while (const auto letter = window_.peek()) {
      if (depth == 0 && (letter == ',' || letter == '}'))
        break;
      if (letter == '"') {
        kept += text(most - std::min(most, kept.size()));
        continue;
      }
      keep(kept, most);
      if (letter == '[' || letter == '{')
        ++depth;
      if (letter == ']' || letter == '}')
        --depth;
    }
    return kept;
  }

  static std::optional<int> count_of(const FlatObject& info, std::string_view key) {
    const auto number = info.number(key);
    if (number && *number >= 0 && *number < 1e9 && std::floor(*number) == *number)
      return static_cast<int>(*number);
    return {};
  }

  void take_member(const std::string& key, const std::string& json) {
    if (key == distributed_info) {
      header_.distributed = json;
      const FlatObject info = flat_object(json);
      header_.rank = count_of(info, "rank");
      header_.world_size = count_of(info, "world_size");
    } else if (key == "\"baseTimeNanoseconds\"") {
      // Nanoseconds since 1970, which exceed the limit for microseconds. Below this limit two of
      // them can be subtracted.
      constexpr std::int64_t most = 4'000'000'000'000'000'000;
      std::string_view token =
          std::string_view(json).substr(0, json.find_last_not_of(" \t\r\n") + 1);
      if (token.size() > 2 && token.front() == '"' && token.back() == '"')
        token = token.substr(1, token.size() - 2);
      std::int64_t time = 0;
      const auto read = std::from_chars(token.data(), token.data() + token.size(), time);
      if (read.ec == std::errc() && read.ptr == token.data() + token.size() && time <= most &&
          time >= -most)
        header_.base_time = time;
    }
  }

  TextWindow window_;
  ChromeFile& header_;
  ProblemList& problems_;
  ChromeEventParser& parser_;
  const ChromeEventParser::Take& take_;
};

}  // namespace

void read_chrome_file(const std::filesystem::path& file, ChromeFile& header, ProblemList& problems,
                      ChromeEventParser& parser, const ChromeEventParser::Take& take) {
  ChromeFileReader(file, header, problems, parser, take).read();
}

}  // namespace pipewright::trace
