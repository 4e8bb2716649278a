#pragma once

// One event of a Chrome trace, as written in the file. Only this class uses simdjson.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chrome/object_list.hpp"

namespace pipewright::trace {

/// An exact time. A double would round: microseconds since 1970 have 16 digits before the decimal
/// point.
struct Microseconds {
  std::int64_t whole = 0;
  double fraction = 0;
};

/// The views are valid only during the call that passes the event.
struct ChromeEvent {
  std::uint64_t offset = 0;  // in the text
  char phase = '\0';
  std::string_view name{}, category{};
  std::string_view process{}, thread{};  // as written: 12, "stream 7"
  std::string_view id{};                 // common id of both ends of an arrow, as written
  std::optional<Microseconds> start{}, duration{};
  std::string_view arguments{};  // JSON; those of spans only if requested from the parser
};

class ChromeEventParser {
 public:
  using Take = std::function<void(const ChromeEvent&)>;
  using Refuse = std::function<void(std::uint64_t offset, std::string_view why)>;

  ChromeEventParser();
  ~ChromeEventParser();
  ChromeEventParser(const ChromeEventParser&) = delete;
  ChromeEventParser& operator=(const ChromeEventParser&) = delete;

  /// Spans have many arguments, and few of them contain anything that is shown, so they are skipped
  /// by default.
  void set_wants_span_arguments(bool wants);

  /// Reads the objects at `places` of the window, each on its own, so that an invalid object does
  /// not affect the others.
  void read(TextWindow& window, std::span<const ObjectList::Place> places, const Take& take,
            const Refuse& refuse);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// The texts and numbers of one JSON object, without nested values.
struct FlatObject {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, double>> numbers;

  std::optional<std::string> text(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
};
FlatObject flat_object(std::string_view json);

/// Parses a JSON number of microseconds, also in quotes.
std::optional<Microseconds> parse_microseconds(std::string_view token);

}  // namespace pipewright::trace
