#include "chrome/chrome_event.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace pipewright::trace {

namespace ondemand = simdjson::ondemand;

static_assert(simdjson::SIMDJSON_PADDING <= TextWindow::padding);

struct ChromeEventParser::Parser {
  ondemand::parser parser;
  bool wants_span_arguments = false;

  std::size_t read_all(TextWindow& window, std::span<const ObjectList::Place> places,
                       const Take& take);
  const char* read_one(TextWindow& window, ObjectList::Place place, const Take& take);
};

namespace {

std::string_view without_space_behind(std::string_view token) {
  const auto last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view without_quotes(std::string_view token) {
  if (token.size() < 2 || token.front() != '"' || token.back() != '"')
    return token;
  return token.substr(1, token.size() - 2);
}

/// Compares a key together with its closing quote. Reading past the last key is safe, because the
/// text continues.
bool is_key(const char* key, std::string_view expected) {
  return std::memcmp(key, expected.data(), expected.size()) == 0;
}

/// Returns an empty view if the value is not a text.
std::string_view text_of(ondemand::value& value) {
  const std::string_view token = without_space_behind(value.raw_json_token());
  if (token.empty() || token.front() != '"')
    return {};
  if (token.find('\\') == std::string_view::npos)
    return without_quotes(token);
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS)
    return {};
  return text;
}

std::string_view scalar_of(ondemand::value& value) {
  const std::string_view token = without_space_behind(value.raw_json_token());
  return token.starts_with('{') || token.starts_with('[') ? std::string_view{} : token;
}

bool is_span(char phase) { return phase == 'X' || phase == 'B' || phase == 'E'; }

simdjson::error_code read_arguments(ondemand::value& value, ChromeEvent& event) {
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS)
    return simdjson::SUCCESS;
  return object.raw_json().get(event.arguments);
}

simdjson::error_code read_field(ondemand::field& field, bool span_arguments, ChromeEvent& event) {
  const char* const key = field.key().raw();
  ondemand::value& value = field.value();
  switch (*key) {
    case 'p':
      if (is_key(key, "ph\"")) {
        const std::string_view phase = text_of(value);
        event.phase = phase.size() == 1 ? phase.front() : '?';
      } else if (is_key(key, "pid\"")) {
        event.process = scalar_of(value);
      }
      break;
    case 't':
      if (is_key(key, "ts\""))
        event.start = parse_microseconds(scalar_of(value));
      else if (is_key(key, "tid\""))
        event.thread = scalar_of(value);
      break;
    case 'd':
      if (is_key(key, "dur\""))
        event.duration = parse_microseconds(scalar_of(value));
      break;
    case 'n':
      if (is_key(key, "name\""))
        event.name = text_of(value);
      break;
    case 'c':
      if (is_key(key, "cat\""))
        event.category = text_of(value);
      break;
    case 'i':
      if (is_key(key, "id\""))
        event.id = scalar_of(value);
      break;
    case 'a':
      if (is_key(key, "args\"") && (span_arguments || !is_span(event.phase)))
        return read_arguments(value, event);
      break;
    default:
      break;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_object(ondemand::object& object, bool span_arguments,
                                 ChromeEvent& event) {
  for (auto next : object) {
    ondemand::field field;
    if (const auto error = std::move(next).get(field); error != simdjson::SUCCESS)
      return error;
    if (const auto error = read_field(field, span_arguments, event); error != simdjson::SUCCESS)
      return error;
  }
  return simdjson::SUCCESS;
}

/// Replaces a character of the window during the lifetime of the object.
class Replaced {
 public:
  Replaced(char* letter, char by) : letter_(letter), before_(*letter) { *letter = by; }
  ~Replaced() { *letter_ = before_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  char* letter_;
  char before_;
};

}  // namespace

ChromeEventParser::ChromeEventParser() : parser_(std::make_unique<Parser>()) {}
ChromeEventParser::~ChromeEventParser() = default;

void ChromeEventParser::set_wants_span_arguments(bool wants) {
  parser_->wants_span_arguments = wants;
}

/// Reads all objects at once, as a temporary list; returns how many were read before the first
/// invalid one.
std::size_t ChromeEventParser::Parser::read_all(TextWindow& window,
                                                std::span<const ObjectList::Place> places,
                                                const Take& take) {
  char* const begin = window.data() + places.front().begin - 1;
  char* const end = window.data() + places.back().end;
  const Replaced opening(begin, '[');
  const Replaced closing(end, ']');
  const auto size = static_cast<std::size_t>(end - begin) + 1;
  ondemand::document document;
  ondemand::array list;
  if (parser.iterate(simdjson::padded_string_view(begin, size, size + simdjson::SIMDJSON_PADDING))
              .get(document) != simdjson::SUCCESS ||
      document.get_array().get(list) != simdjson::SUCCESS)
    return 0;
  std::size_t read = 0;
  for (auto element : list) {
    ondemand::object object;
    ChromeEvent event;
    if (read == places.size() || element.get_object().get(object) != simdjson::SUCCESS)
      return read;
    event.offset = window.offset() + places[read].begin;
    if (read_object(object, wants_span_arguments, event) != simdjson::SUCCESS)
      return read;
    take(event);
    ++read;
  }
  return read;
}

/// Returns the error, or null if the object is valid.
const char* ChromeEventParser::Parser::read_one(TextWindow& window, ObjectList::Place place,
                                                const Take& take) {
  const std::size_t size = place.end - place.begin;
  ondemand::document document;
  ondemand::object object;
  ChromeEvent event{.offset = window.offset() + place.begin};
  auto error = parser
                   .iterate(simdjson::padded_string_view(window.data() + place.begin, size,
                                                         size + simdjson::SIMDJSON_PADDING))
                   .get(document);
  if (error == simdjson::SUCCESS)
    error = document.get_object().get(object);
  if (error == simdjson::SUCCESS)
    error = read_object(object, wants_span_arguments, event);
  if (error != simdjson::SUCCESS)
    return simdjson::error_message(error);
  take(event);
  return nullptr;
}

void ChromeEventParser::read(TextWindow& window, std::span<const ObjectList::Place> places,
                             const Take& take, const Refuse& refuse) {
  if (places.empty())
    return;
  for (std::size_t next = parser_->read_all(window, places, take); next < places.size(); ++next)
    if (const char* const why = parser_->read_one(window, places[next], take))
      refuse(window.offset() + places[next].begin, why);
}

std::optional<std::string> FlatObject::text(std::string_view key) const {
  for (const auto& [name, value] : texts)
    if (name == key)
      return value;
  return {};
}

std::optional<double> FlatObject::number(std::string_view key) const {
  for (const auto& [name, value] : numbers)
    if (name == key)
      return value;
  return {};
}

FlatObject flat_object(std::string_view json) {
  FlatObject flat;
  const simdjson::padded_string text(json);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (parser.iterate(text).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return flat;
  for (auto next : object) {
    ondemand::field field;
    std::string_view key;
    if (std::move(next).get(field) != simdjson::SUCCESS ||
        field.unescaped_key().get(key) != simdjson::SUCCESS)
      break;
    std::string name(key);
    const std::string_view token = scalar_of(field.value());
    if (token.starts_with('"')) {
      flat.texts.emplace_back(std::move(name), text_of(field.value()));
    } else if (double number = 0;
               !token.empty() && field.value().get_double().get(number) == simdjson::SUCCESS) {
      flat.numbers.emplace_back(std::move(name), number);
    }
  }
  return flat;
}

std::optional<Microseconds> parse_microseconds(std::string_view token) {
  token = without_quotes(token);
  constexpr std::int64_t most = 1'000'000'000'000'000'000;  // thirty thousand years
  Microseconds time;
  const char* const end = token.data() + token.size();
  const auto [behind, error] = std::from_chars(token.data(), end, time.whole);
  if (error != std::errc() || time.whole > most || time.whole < -most)
    return {};
  if (behind == end)
    return time;
  const auto rest = static_cast<std::size_t>(end - behind);
  double number = 0;
  if (*behind == '.' && rest <= 16 && rest > 1 &&
      std::all_of(behind + 1, end, [](char c) { return c >= '0' && c <= '9'; })) {
    std::int64_t digits = 0;
    std::from_chars(behind + 1, end, digits);
    static constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    number = static_cast<double>(digits) / powers[rest - 1];
    time.fraction = token.front() == '-' ? -number : number;
    return time;
  }
  // A different notation of a number, or not a number.
  const auto read = std::from_chars(token.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || !(std::abs(number) < double(most)))
    return {};
  time.whole = static_cast<std::int64_t>(number);
  time.fraction = number - static_cast<double>(time.whole);
  return time;
}

}  // namespace pipewright::trace
