#include "trainers/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace pipewright::models {
namespace {

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

constexpr std::size_t longest_value = 4096;  // of a variable, so that nested values cannot grow
                                             // without limit

class ShellReader {
 public:
  explicit ShellReader(std::string_view script) : script_(script) {}

  std::vector<ShellWord> words() {
    while (at_ < script_.size()) {
      if (script_[at_] == '#')
        skip_comment();
      else if (is_break(script_[at_]))
        advance();
      else if (continues())
        advance(), advance();
      else
        word();
    }
    return std::move(words_);
  }

 private:
  static bool is_break(char c) {
    return is_blank(c) || c == '(' || c == ')' || c == ';' || c == '|' || c == '&';
  }
  bool continues() const {
    return script_[at_] == '\\' && at_ + 1 < script_.size() && script_[at_ + 1] == '\n';
  }

  void advance() {
    if (script_[at_++] == '\n')
      ++line_, line_begin_ = at_;
  }

  void skip_comment() {
    while (at_ < script_.size() && script_[at_] != '\n')
      ++at_;
  }

  void word() {
    ShellWord word{.text = {}, .line = line_, .column = static_cast<int>(at_ - line_begin_) + 1};
    while (at_ < script_.size() && !is_break(script_[at_]) && !continues()) {
      const char c = script_[at_];
      if (c == '"' || c == '\'') {
        if (holds_options(c)) {
          advance();  // its contents are read as words of the script
          break;
        }
        quoted(word, c);
      } else if (c == '$') {
        value(word.text);
      } else {
        advance();
        if (c != '\\')
          word.text += c;
        else if (at_ < script_.size())
          word.text += script_[at_], advance();
      }
    }
    const bool is_key = !word.quoted && word.text.starts_with("--") && word.text.ends_with(':');
    if (!set_variable(word) && (word.quoted || !word.text.empty()))
      words_.push_back(std::move(word));
    if (is_key)
      yaml_value();
  }

  /// Reads the value after a key: the rest of the line, without comment and surrounding quotes.
  void yaml_value() {
    while (at_ < script_.size() && (script_[at_] == ' ' || script_[at_] == '\t'))
      advance();
    ShellWord word{.text = {}, .line = line_, .column = static_cast<int>(at_ - line_begin_) + 1};
    const std::size_t begin = at_;
    while (at_ < script_.size() && script_[at_] != '\n' && !begins_comment())
      advance();
    std::string_view text = script_.substr(begin, at_ - begin);
    while (!text.empty() && is_blank(text.back()))
      text.remove_suffix(1);
    if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front()) {
      text = text.substr(1, text.size() - 2);
      word.quoted = true;
    }
    word.text = text;
    if (!text.empty() || word.quoted)
      words_.push_back(std::move(word));
  }
  bool begins_comment() const {
    return script_[at_] == '#' && (at_ == 0 || is_blank(script_[at_ - 1]));
  }

  void quoted(ShellWord& word, char quote) {
    word.quoted = true;
    advance();
    while (at_ < script_.size() && script_[at_] != quote) {
      if (quote == '"' && script_[at_] == '$') {
        value(word.text);
        continue;
      }
      word.text += script_[at_];
      advance();
    }
    if (at_ < script_.size())
      advance();
  }

  /// Returns true if options follow before the closing quote. A stray quote after such options is
  /// ignored.
  bool holds_options(char quote) const {
    const std::size_t end = std::min(script_.find(quote, at_ + 1), script_.size());
    const std::string_view inside = script_.substr(at_ + 1, end - at_ - 1);
    const bool is_end = at_ + 1 == script_.size() || is_break(script_[at_ + 1]);
    return is_end || inside.find("--") != std::string_view::npos;
  }

  /// Expands `$NAME` or `${NAME}`, also with a default, `${NAME:-4}`.
  void value(std::string& text) {
    const std::size_t begin = at_;
    advance();
    const bool braced = at_ < script_.size() && script_[at_] == '{';
    if (braced)
      advance();
    const std::size_t name_begin = at_;
    while (at_ < script_.size() && is_name_letter(script_[at_]))
      advance();
    const std::string name(script_.substr(name_begin, at_ - name_begin));
    std::optional<std::string> fallback;
    if (braced) {
      const std::size_t rest = at_;
      while (at_ < script_.size() && script_[at_] != '}' && script_[at_] != '\n')
        advance();
      const std::string_view inside = script_.substr(rest, at_ - rest);
      if (inside.starts_with(":-"))
        fallback = inside.substr(2);
      if (at_ < script_.size() && script_[at_] == '}')
        advance();
    }
    const auto found = variables_.find(name);
    if (found != variables_.end())
      text += found->second;
    else
      text += fallback.value_or(std::string(script_.substr(begin, at_ - begin)));
  }

  bool set_variable(const ShellWord& word) {
    const auto equals = word.text.find('=');
    if (equals == std::string::npos || equals == 0 || word.text.starts_with('-') ||
        !std::all_of(word.text.begin(), word.text.begin() + static_cast<std::ptrdiff_t>(equals),
                     is_name_letter))
      return false;
    variables_[word.text.substr(0, equals)] = word.text.substr(equals + 1, longest_value);
    return true;
  }

  std::string_view script_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
  std::vector<ShellWord> words_;
  std::map<std::string, std::string> variables_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view script) { return ShellReader(script).words(); }

}  // namespace pipewright::models
