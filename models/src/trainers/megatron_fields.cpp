#include "trainers/megatron_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

constexpr double largest_number = 1e15;

template <class Value>
bool is_among(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_option(const std::string& word) { return word.starts_with("--") && word.size() >= 4; }

}  // namespace

/// Returns the last occurrence of each option. `--a=1` and a YAML file's `--a: 1` are equivalent to
/// `--a 1`. An option that is false in a YAML file counts as not given.
MegatronFields::Arguments MegatronFields::arguments_of(const std::vector<ShellWord>& words) {
  Arguments arguments;
  Argument* open = nullptr;
  for (const ShellWord& word : words) {
    if (!is_option(word.text)) {
      if (open != nullptr && !open->value)
        open->value = word;
      else if (open != nullptr)
        open->more.push_back(word);
      continue;
    }
    const std::size_t end = std::min(word.text.find_first_of("=:"), word.text.size());
    Argument argument{.option = word};
    argument.option.text.resize(end);
    if (end + 1 < word.text.size()) {
      argument.value = word;
      argument.value->text.erase(0, end + 1);
      argument.value->column += static_cast<int>(end) + 1;
    }
    open = &(arguments[argument.option.text] = std::move(argument));
  }
  std::erase_if(arguments, [](const auto& entry) {
    const auto& value = entry.second.value;
    return value && (value->text == "false" || value->text == "False");
  });
  return arguments;
}

MegatronFields::MegatronFields(std::string_view text, std::string name)
    : name_(std::move(name)), arguments_(arguments_of(shell_words(text))) {}

bool MegatronFields::has(const std::string& option) {
  asked_.push_back(option);
  return arguments_.contains(option);
}

void MegatronFields::size(int& member, const std::string& option, double most) {
  if (has(option))
    member = integer(&member, option, 1, most);
  else
    member = 1, missing(option);
}

void MegatronFields::size_or(int& member, const std::string& option, int fallback, double least,
                             double most) {
  member = has(option) ? integer(&member, option, least, most) : fallback;
}

double MegatronFields::number_or(const std::string& option, double fallback) {
  if (!has(option))
    return fallback;
  const std::string& value = word_of(option).text;
  double number = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
  if (end.ec == std::errc() && end.ptr == value.data() + value.size() && number >= 0 &&
      number <= largest_number)
    return number;
  refuse(option,
         fmt::format("a number from 0 to {:g} is needed here, not \"{}\"", largest_number, value));
  return fallback;
}

std::string MegatronFields::choice(const std::string& option,
                                   const std::vector<std::string>& words) {
  if (!has(option))
    return words.front();
  const std::string& value = word_of(option).text;
  if (!is_among(words, value))
    refuse(option, fmt::format("\"{}\" is not known here{} (possible: {})", value,
                               plan::did_you_mean(value, words), plan::listed(words)));
  return value;
}

std::optional<std::string> MegatronFields::text(const std::string& option) {
  if (!has(option))
    return {};
  return word_of(option).text;
}

std::vector<std::string> MegatronFields::list(const std::string& option,
                                              const std::vector<std::string>& known) {
  if (!has(option))
    return {};
  std::string text = word_of(option).text;
  for (const ShellWord& word : arguments_.at(option).more)
    text += ' ' + word.text;
  std::vector<std::string> found;
  std::string word;
  for (const char c : text + ' ') {
    if (std::string_view("[], ").find(c) == std::string_view::npos) {
      word += c;
      continue;
    }
    if (!word.empty() && is_among(known, word))
      found.push_back(word);
    else if (!word.empty())
      break;
    word.clear();
  }
  if (found.empty() && !word.empty())
    refuse(option, fmt::format("\"{}\" is not known here{} (possible: {})", word,
                               plan::did_you_mean(word, known), plan::listed(known)));
  return found;
}

void MegatronFields::refuse(const std::string& option, const std::string& message) {
  const auto found = arguments_.find(option);
  const ShellWord none{};
  const ShellWord& at = found == arguments_.end()         ? none
                        : found->second.value.has_value() ? *found->second.value
                                                          : found->second.option;
  faults_.push_back(fmt::format("{}:{}:{}: {}: {}", name_, at.line, at.column, option, message));
}

void MegatronFields::tell_missing() {
  const std::vector<std::string> others = unread();
  for (const std::string& option : missing_) {
    const std::string* near = plan::nearest_to(option, others);
    refuse(near == nullptr ? option : *near,
           near == nullptr ? "is missing"
                           : fmt::format("\"{}\" is missing; this is the nearest to it", option));
  }
}

void MegatronFields::fault(const int* member, const std::string& message) {
  const auto option = option_of_.find(member);
  refuse(option == option_of_.end() ? std::string("--hidden-size") : option->second, message);
}

std::string MegatronFields::all() const {
  std::string text;
  for (const auto& [option, argument] : arguments_) {
    text += (text.empty() ? "" : "; ") + option.substr(2);
    if (argument.value && argument.value->text != "true")
      text += '=' + argument.value->text;
  }
  return text;
}

std::vector<std::string> MegatronFields::unread() const {
  std::vector<std::string> others;
  for (const auto& [option, argument] : arguments_)
    if (!is_among(asked_, option))
      others.push_back(option);
  return others;
}

/// Returns an option's value, or an empty word if it has none.
const ShellWord& MegatronFields::word_of(const std::string& option) {
  Argument& argument = arguments_.at(option);
  if (!argument.value) {
    argument.value = argument.option;
    argument.value->text.clear();
  }
  return *argument.value;
}

int MegatronFields::integer(const int* member, const std::string& option, double least,
                            double most) {
  option_of_[member] = option;
  const std::string& value = word_of(option).text;
  long long number = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
  const auto is_number = end.ptr == value.data() + value.size() && !value.empty();
  if (is_number && end.ec == std::errc() && static_cast<double>(number) >= least &&
      static_cast<double>(number) <= most)
    return static_cast<int>(number);
  if (value.starts_with('$'))
    refuse(option, fmt::format("{} is not set in this file", value));
  else if (is_number)
    refuse(option, fmt::format("{} is not possible: it must be at least {:.15g} and at most "
                               "{:.15g}",
                               value, least, most));
  else
    refuse(option, fmt::format("a whole number is needed here, not \"{}\"", value));
  return std::max(1, static_cast<int>(least));
}

}  // namespace pipewright::models
