#pragma once

// One event of a Chrome trace as it stands there. The one place that knows simdjson.

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

/// Exact, where a double would round: microseconds since 1970 have 16 digits before the point.
struct Microseconds {
  std::int64_t whole = 0;
  double fraction = 0;
};

/// Views are good as long as the event is looked at.
struct ChromeEvent {
  std::uint64_t offset = 0;  // in the text
  char phase = '\0';
  std::string_view name{}, category{};
  std::string_view process{}, thread{};  // as they are written: 12, "stream 7"
  std::string_view id{};                 // of both ends of an arrow, likewise
  std::optional<Microseconds> start{}, duration{};
  std::string_view arguments{};  // JSON; of spans where the parser was asked for them
};

class ChromeEventParser {
 public:
  using Take = std::function<void(const ChromeEvent&)>;
  using Refuse = std::function<void(std::uint64_t offset, std::string_view why)>;

  ChromeEventParser();
  ~ChromeEventParser();
  ChromeEventParser(const ChromeEventParser&) = delete;
  ChromeEventParser& operator=(const ChromeEventParser&) = delete;

  /// Arguments of spans are many, and few say anything that is shown.
  void set_wants_span_arguments(bool wants);

  /// Reads the objects at `places` of the window, each by itself: one that is wrong spoils no
  /// other.
  void read(TextWindow& window, std::span<const ObjectList::Place> places, const Take& take,
            const Refuse& refuse);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// The texts and numbers of one JSON object, what is in them left out.
struct FlatObject {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, double>> numbers;

  std::optional<std::string> text(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
};
FlatObject flat_object(std::string_view json);

/// A JSON number of microseconds, also between quotes.
std::optional<Microseconds> parse_microseconds(std::string_view token);

}  // namespace pipewright::trace
