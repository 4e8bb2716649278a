#include "pipewright/plan/json/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "pipewright/plan/lfs_pointer.hpp"
#include "renamed_keys.hpp"

namespace pipewright::plan {
namespace {

std::string escaped(const std::string& key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const auto before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto line_start = before.rfind('\n');
  const auto column = line_start == std::string_view::npos ? offset + 1 : offset - line_start;
  return fmt::format("{}:{}", line, column);
}

/// Scans well-formed JSON and records where each key and element begins.
class PositionScanner {
 public:
  /// `renames`: old keys are recorded under their current names.
  PositionScanner(std::string_view text, std::map<std::string, std::size_t>& offsets, bool renames)
      : text_(text), offsets_(offsets), renames_(renames) {}

  /// Returns the pointers of duplicate keys. JSON allows them, but one of the values would be lost.
  std::vector<std::string> scan() {
    value("");
    return doubled_;
  }

 private:
  void value(const std::string& pointer) {
    skip_space();
    offsets_.try_emplace(pointer, at_);
    if (text_[at_] == '{')
      object(pointer);
    else if (text_[at_] == '[')
      array(pointer);
    else if (text_[at_] == '"')
      string();
    else
      while (at_ < text_.size() && std::strchr(",]} \t\r\n", text_[at_]) == nullptr)
        ++at_;
  }

  void object(const std::string& pointer) {
    ++at_;
    for (skip_space(); text_[at_] != '}'; skip_space()) {
      const std::size_t key_at = at_;
      const auto key = Json::parse(string()).get<std::string>();
      const std::string child = pointer + "/" + escaped(renames_ ? current_key(key) : key);
      if (!offsets_.insert_or_assign(child, key_at).second)
        doubled_.push_back(child);
      skip_space();
      ++at_;  // the colon
      value(child);
      skip_space();
      if (text_[at_] == ',')
        ++at_;
    }
    ++at_;
  }

  void array(const std::string& pointer) {
    ++at_;
    std::size_t index = 0;
    for (skip_space(); text_[at_] != ']'; skip_space()) {
      value(fmt::format("{}/{}", pointer, index++));
      skip_space();
      if (text_[at_] == ',')
        ++at_;
    }
    ++at_;
  }

  std::string_view string() {
    const std::size_t begin = at_++;
    while (text_[at_] != '"')
      at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr)
      ++at_;
  }

  std::string_view text_;
  std::map<std::string, std::size_t>& offsets_;
  bool renames_;
  std::size_t at_ = 0;
  std::vector<std::string> doubled_;
};

/// Maximum nesting. Readers and writers of JSON recurse, and a malicious file must not exhaust the
/// stack.
constexpr int deepest = 200;

/// Returns true if the brackets in the text, below `depth` existing levels, nest too deep.
bool nests_too_deep(std::string_view text, int depth = 0) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > deepest)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string type_in_words(const Json& value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list";
  if (value.is_null())
    return "null";
  const std::string text = value.dump();
  return value.is_string() ? fmt::format("the text {}", text) : text;
}

/// Returns false for an integer beyond the 64 bits to which `get` would truncate it.
bool fits_64_bits(const Json& integer) {
  return !integer.is_number_unsigned() ||
         integer.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
}

bool fits_int(std::int64_t number) {
  return number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max();
}

constexpr std::size_t most_errors = 1000;  // reported per document; further ones are only counted

/// Returns false for text that is not UTF-8, which JSON can hold but not write.
bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

void check_assignment(const std::string& assignment) {
  const auto refuse = [&](const std::string& message) {
    throw InputError(fmt::format("--set {}: {}", assignment, message));
  };
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("write it as path=value, such as pipeline.ranks=4");
  if (!is_utf8(assignment))
    refuse("this is not UTF-8");
  const std::string_view path = std::string_view(assignment).substr(0, equals);
  const auto levels = 1 + std::count(path.begin(), path.end(), '.');
  if (levels > deepest ||
      nests_too_deep(std::string_view(assignment).substr(equals + 1), static_cast<int>(levels)))
    refuse(fmt::format("nested more than {} levels deep", deepest));
}

constexpr std::string_view python_constants[] = {"NaN", "Infinity", "-Infinity"};

/// Returns nlohmann's reason without its own error name and position.
std::string reason_behind(std::string_view mark, const std::string& what) {
  const auto at = what.find(mark);
  return at == std::string::npos ? what : what.substr(at + mark.size());
}

/// Removes every pointer at or below `pointer`.
template <class Value>
void erase_below(std::map<std::string, Value>& by_pointer, const std::string& pointer) {
  std::erase_if(by_pointer, [&](const auto& entry) {
    return entry.first == pointer || entry.first.starts_with(pointer + "/");
  });
}

/// Returns the element of a list whose index is the key.
Json& element_of(Json& list, const std::string& key, const std::string& pointer,
                 const std::string& assignment) {
  std::size_t place = 0;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), place);
  if (failure != std::errc{} || end != key.data() + key.size() || place >= list.size())
    throw InputError(fmt::format("--set {}: {} is a list of {}, and \"{}\" is not an index of it",
                                 assignment, pointer, list.size(), key));
  return list[place];
}

/// Puts quotes around NaN, Infinity and -Infinity, which Python's json writes although JSON does
/// not have them. `quotes` receives the offsets of the added quotes.
std::string with_quoted_constants(std::string_view text, std::vector<std::size_t>& quotes) {
  std::string out;
  const auto add_quote = [&] {
    quotes.push_back(out.size());
    out += '"';
  };
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = 1;
    if (text[at] == '"')
      while (at + length < text.size() && text[at + length++] != '"')
        length += text[at + length - 1] == '\\' ? 1 : 0;
    const auto* const constant =
        std::find_if(std::begin(python_constants), std::end(python_constants),
                     [&](std::string_view each) { return text.substr(at).starts_with(each); });
    if (constant == std::end(python_constants)) {
      out += text.substr(at, length);
      continue;
    }
    length = constant->size();
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + length);
    if (next != std::string_view::npos && text[next] == ':') {  // a key needs its own quotes
      out += *constant;
      continue;
    }
    add_quote();
    out += *constant;
    add_quote();
  }
  return out;
}

/// Parses a text. Constants of Python become texts, so that they are rejected where a number is
/// needed.
Json parsed(const std::string& text, const std::string& name) {
  std::vector<std::size_t> quotes;
  const auto refuse = [&](const Json::parse_error& error) {
    std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    offset -= static_cast<std::size_t>(std::lower_bound(quotes.begin(), quotes.end(), offset) -
                                       quotes.begin());
    throw InputError(fmt::format("{}:{}: /: not JSON: {}", name, line_and_column(text, offset),
                                 reason_behind(": ", error.what())));
  };
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::string quoted = with_quoted_constants(text, quotes);
    if (quotes.empty())
      refuse(error);
    try {
      return Json::parse(quoted);
    } catch (const Json::parse_error& again) {
      refuse(again);
    }
  }
  return {};
}

}  // namespace

JsonDocument JsonDocument::parse(std::string text, std::string name) {
  JsonDocument document;
  document.name_ = std::move(name);
  document.text_ = std::move(text);
  if (nests_too_deep(document.text_))
    throw InputError(
        fmt::format("{}:1:1: /: nested more than {} levels deep", document.name_, deepest));
  try {
    document.root_ = parsed(document.text_, document.name_);
    // A number beyond the range of double; nlohmann gives no position.
  } catch (const Json::out_of_range& error) {
    throw InputError(fmt::format("{}:1:1: /: not usable: {}", document.name_,
                                 reason_behind("] ", error.what())));
  }
  document.renames_keys_ = may_have_old_keys(document.root_);
  const auto doubled =
      PositionScanner(document.text_, document.offsets_, document.renames_keys_).scan();
  Diagnostics diagnostics(document);
  for (const std::string& pointer : doubled)
    diagnostics.add(pointer, "this key occurs twice");
  diagnostics.throw_if_any();
  if (document.renames_keys_)
    report_old_keys(document.name_, rename_old_keys(document.root_));
  return document;
}

JsonDocument JsonDocument::read(const std::filesystem::path& file) {
  return parse(read_file(file), file.string());
}

void JsonDocument::set(const std::string& assignment) {
  check_assignment(assignment);
  const auto equals = assignment.find('=');
  const std::string right = assignment.substr(equals + 1);
  Json value = Json::parse(right, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    value = right;

  std::string pointer;
  Json* target = &root_;
  std::istringstream path(assignment.substr(0, equals));
  for (std::string key; std::getline(path, key, '.');) {
    if (target->is_array()) {
      target = &element_of(*target, key, pointer, assignment);
      pointer += "/" + key;
      continue;
    }
    if (!target->is_object() && !target->is_null())
      throw InputError(fmt::format("--set {}: {} holds {}, it has no field \"{}\"", assignment,
                                   pointer.empty() ? "/" : pointer, type_in_words(*target), key));
    if (renames_keys_)
      key = current_key(key);
    pointer += "/" + escaped(key);
    target = &(*target)[key];
  }
  *target = std::move(value);
  erase_below(offsets_, pointer);
  erase_below(overrides_, pointer);
  overrides_[pointer] = assignment;
}

std::string JsonDocument::position(const std::string& pointer) const {
  for (std::string at = pointer;; at.resize(at.rfind('/'))) {
    if (const auto found = overrides_.find(at); found != overrides_.end())
      return "--set " + found->second;
    if (const auto found = offsets_.find(at); found != offsets_.end())
      return fmt::format("{}:{}", name_, line_and_column(text_, found->second));
    if (at.empty())
      return name_ + ":1:1";
  }
}

void Diagnostics::add(const std::string& pointer, std::string_view message) {
  // Every position costs a count of lines. If a large file is wrong throughout, the first errors
  // suffice.
  if (errors_.size() >= most_errors) {
    errors_.emplace_back();
    return;
  }
  errors_.push_back(fmt::format("{}: {}: {}", document_->position(pointer),
                                pointer.empty() ? "/" : pointer, message));
}

void Diagnostics::add_lines(const std::string& pointer, std::string_view lines) {
  for (;;) {
    const std::size_t end = lines.find('\n');
    add(pointer, lines.substr(0, end));
    if (end == std::string_view::npos)
      return;
    lines.remove_prefix(end + 1);
  }
}

void Diagnostics::throw_if_any() const {
  if (errors_.empty())
    return;
  const auto told = std::min(errors_.size(), most_errors);
  std::string text = fmt::format(
      "{}", fmt::join(errors_.begin(), errors_.begin() + static_cast<std::ptrdiff_t>(told), "\n"));
  if (told < errors_.size())
    text += fmt::format("\n… and {} more", errors_.size() - told);
  throw InputError(text);
}

JsonObject::JsonObject(Diagnostics& diagnostics, std::string pointer)
    : diagnostics_(diagnostics), pointer_(std::move(pointer)), object_(nullptr) {
  const Json& root = diagnostics_.document().root();
  const Json::json_pointer where(pointer_);
  if (!root.contains(where))
    return;  // the caller that required the field has recorded its absence
  const Json& value = root.at(where);
  if (value.is_object())
    object_ = &value;
  else
    diagnostics_.add(pointer_,
                     fmt::format("an object is needed here, not {}", type_in_words(value)));
}

JsonObject::~JsonObject() {
  if (object_ == nullptr)
    return;
  for (const auto& item : object_->items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end())
      continue;
    diagnostics_.add(
        pointer_ + "/" + escaped(item.key()),
        fmt::format("unknown key \"{}\"{}", item.key(), did_you_mean(item.key(), known_)));
  }
}

void JsonObject::allow(const std::string& key) { known_.push_back(key); }

const Json* JsonObject::find(const std::string& key) {
  allow(key);
  if (object_ == nullptr || !object_->contains(key))
    return nullptr;
  return &object_->at(key);
}

bool JsonObject::has(const std::string& key) const {
  return object_ != nullptr && object_->contains(key);
}

const Json* JsonObject::want(const std::string& key, bool has_fallback) {
  const Json* value = find(key);
  if (value == nullptr && object_ != nullptr && !has_fallback)
    diagnostics_.add(pointer_, fmt::format("\"{}\" is missing", key));
  return value;
}

void JsonObject::error(const std::string& key, std::string_view message) {
  diagnostics_.add(pointer_ + "/" + escaped(key), message);
}

bool JsonObject::in_range(const std::string& pointer, double value, Range range) {
  const bool low = range.excludes_least ? value <= range.least : value < range.least;
  if (std::isfinite(value) && !low && value <= range.most)
    return true;
  std::string rule;
  if (std::isfinite(range.least))
    rule = fmt::format("{} {:.15g}", range.excludes_least ? "more than" : "at least", range.least);
  if (std::isfinite(range.most))
    rule += fmt::format("{}at most {:.15g}", rule.empty() ? "" : " and ", range.most);
  diagnostics_.add(pointer, fmt::format("{:.15g} is not possible: it must be {}", value,
                                        rule.empty() ? "finite" : rule));
  return false;
}

std::string JsonObject::text(const std::string& key, const std::optional<std::string>& fallback) {
  const Json* value = want(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or("");
  if (value->is_string())
    return value->get<std::string>();
  error(key, fmt::format("a text is needed here, not {}", type_in_words(*value)));
  return fallback.value_or("");
}

bool JsonObject::flag(const std::string& key, std::optional<bool> fallback) {
  const Json* value = want(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or(false);
  if (value->is_boolean())
    return value->get<bool>();
  error(key, fmt::format("true or false is needed here, not {}", type_in_words(*value)));
  return fallback.value_or(false);
}

std::int64_t JsonObject::big_integer(const std::string& key, Range range,
                                     std::optional<std::int64_t> fallback) {
  const auto harmless =
      fallback.value_or(std::isfinite(range.least) ? static_cast<std::int64_t>(range.least) +
                                                         (range.excludes_least ? 1 : 0)
                                                   : 0);
  const Json* value = want(key, fallback.has_value());
  if (value == nullptr)
    return harmless;
  if (!value->is_number_integer()) {
    error(key, fmt::format("a whole number is needed here, not {}", type_in_words(*value)));
    return harmless;
  }
  if (!in_range(pointer_ + "/" + escaped(key), value->get<double>(), range))
    return harmless;
  if (fits_64_bits(*value))
    return value->get<std::int64_t>();
  error(key, fmt::format("{} is too large", value->dump()));
  return harmless;
}

int JsonObject::integer(const std::string& key, Range range, std::optional<int> fallback) {
  std::optional<std::int64_t> wide;
  if (fallback)
    wide = *fallback;
  const std::int64_t number = big_integer(key, range, wide);
  if (fits_int(number))
    return static_cast<int>(number);
  error(key, fmt::format("{} is too {}", number, number > 0 ? "large" : "small"));
  return fallback.value_or(1);
}

double JsonObject::number(const std::string& key, Range range, std::optional<double> fallback) {
  const double harmless = fallback.value_or(1.0);
  const Json* value = want(key, fallback.has_value());
  if (value == nullptr)
    return harmless;
  if (!value->is_number()) {
    error(key, fmt::format("a number is needed here, not {}", type_in_words(*value)));
    return harmless;
  }
  const auto number = value->get<double>();
  return in_range(pointer_ + "/" + escaped(key), number, range) ? number : harmless;
}

Seconds JsonObject::seconds(const std::string& key, std::optional<Seconds> fallback) {
  std::optional<double> plain;
  if (fallback)
    plain = fallback->value;
  return {number(key, at_least(0), plain)};
}

Bytes JsonObject::bytes(const std::string& key, std::optional<Bytes> fallback) {
  std::optional<std::int64_t> plain;
  if (fallback)
    plain = fallback->value;
  return {big_integer(key, {.least = 0, .most = 9e18}, plain)};
}

std::string JsonObject::choice(const std::string& key, const std::vector<std::string>& words,
                               const std::optional<std::string>& fallback) {
  const Json* value = want(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or(words.front());
  if (!value->is_string()) {
    error(key, fmt::format("{} is needed here, not {}", listed(words), type_in_words(*value)));
    return words.front();
  }
  auto word = value->get<std::string>();
  if (std::find(words.begin(), words.end(), word) != words.end())
    return word;
  error(key, fmt::format("\"{}\" is not known here{} (possible: {})", word,
                         did_you_mean(word, words), listed(words)));
  return words.front();
}

std::vector<std::string> JsonObject::elements(const std::string& key, bool required) {
  std::vector<std::string> pointers;
  const Json* value = want(key, !required);
  if (value == nullptr)
    return pointers;
  if (!value->is_array()) {
    error(key, fmt::format("a list is needed here, not {}", type_in_words(*value)));
    return pointers;
  }
  for (std::size_t i = 0; i < value->size(); ++i)
    pointers.push_back(fmt::format("{}/{}/{}", pointer_, escaped(key), i));
  return pointers;
}

std::vector<int> JsonObject::integers(const std::string& key, Range range,
                                      std::optional<std::vector<int>> fallback) {
  if (!has(key) && fallback)
    return allow(key), *fallback;
  std::vector<int> numbers;
  for (const std::string& at : elements(key)) {
    const Json& value = diagnostics_.document().root().at(Json::json_pointer(at));
    if (!value.is_number_integer())
      diagnostics_.add(at,
                       fmt::format("a whole number is needed here, not {}", type_in_words(value)));
    else if (!in_range(at, value.get<double>(), range))
      continue;
    else if (!fits_64_bits(value) || !fits_int(value.get<std::int64_t>()))
      diagnostics_.add(at, fmt::format("{} is too large or too small", value.dump()));
    else
      numbers.push_back(value.get<int>());
  }
  return numbers;
}

std::vector<bool> JsonObject::flags(const std::string& key,
                                    std::optional<std::vector<bool>> fallback) {
  if (!has(key) && fallback)
    return allow(key), *fallback;
  std::vector<bool> flags;
  for (const std::string& at : elements(key)) {
    const Json& value = diagnostics_.document().root().at(Json::json_pointer(at));
    if (value.is_boolean())
      flags.push_back(value.get<bool>());
    else
      diagnostics_.add(at,
                       fmt::format("true or false is needed here, not {}", type_in_words(value)));
  }
  return flags;
}

std::vector<double> JsonObject::numbers(const std::string& key, Range range,
                                        std::optional<std::vector<double>> fallback) {
  if (!has(key) && fallback)
    return allow(key), *fallback;
  std::vector<double> numbers;
  for (const std::string& at : elements(key)) {
    const Json& value = diagnostics_.document().root().at(Json::json_pointer(at));
    if (!value.is_number())
      diagnostics_.add(at, fmt::format("a number is needed here, not {}", type_in_words(value)));
    else if (in_range(at, value.get<double>(), range))
      numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::vector<std::string> JsonObject::texts(const std::string& key,
                                           std::optional<std::vector<std::string>> fallback) {
  if (!has(key) && fallback)
    return allow(key), *fallback;
  std::vector<std::string> words;
  for (const std::string& at : elements(key)) {
    const Json& value = diagnostics_.document().root().at(Json::json_pointer(at));
    if (value.is_string())
      words.push_back(value.get<std::string>());
    else
      diagnostics_.add(at, fmt::format("a text is needed here, not {}", type_in_words(value)));
  }
  return words;
}

std::string JsonObject::child(const std::string& key, bool required) {
  want(key, !required);
  return pointer_ + "/" + escaped(key);
}

std::string read_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw InputError(fmt::format("{}: is a directory, a file is needed", file.string()));
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw InputError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  std::ostringstream text;
  text << stream.rdbuf();
  reject_lfs_pointer(text.view(), file.string());
  return std::move(text).str();
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  write_file(file, std::vector{text});
}

void write_file(const std::filesystem::path& file, const std::vector<std::string_view>& parts) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::file_status there = fs::status(file, failure);
  failure.clear();
  // A device or a pipe cannot be replaced by another file, so it is written in place. A symbolic
  // link stays a link, and its target is written.
  const bool in_place = fs::exists(there) && !fs::is_regular_file(there);
  const fs::path target = fs::is_regular_file(there) ? fs::canonical(file) : file;
  const fs::path written = in_place ? file : fs::path(target.string() + ".part");
  errno = 0;
  std::ofstream stream(written, std::ios::binary | std::ios::trunc);
  for (const std::string_view part : parts)
    stream.write(part.data(), static_cast<std::streamsize>(part.size()));
  stream.close();
  if (!stream)
    failure = {errno != 0 ? errno : EIO, std::generic_category()};
  if (!failure && fs::is_regular_file(there))
    fs::permissions(written, there.permissions(), failure);
  if (!failure && !in_place)
    fs::rename(written, target, failure);
  if (!failure)
    return;
  std::error_code ignored;
  if (!in_place)
    fs::remove(written, ignored);
  throw std::runtime_error(
      fmt::format("{}: cannot be written: {}", file.string(), failure.message()));
}

}  // namespace pipewright::plan
