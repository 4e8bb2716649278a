#include "mutator.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace pipewright::fuzz {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t longest_text = 20'000;  // bounds nested repeats

constexpr std::array extreme_numbers{
    "0"sv,
    "-0"sv,
    "1"sv,
    "-1"sv,
    "2"sv,
    "63"sv,
    "255"sv,
    "99999"sv,
    "100000"sv,
    "999999"sv,
    "1000000"sv,
    "1999999973"sv,
    "2000000000"sv,
    "2147483647"sv,
    "2147483648"sv,
    "-2147483649"sv,
    "4294967296"sv,
    "9007199254740993"sv,
    "9223372036854775807"sv,
    "9223372036854775808"sv,
    "18446744073709551616"sv,
    "99999999999999999999"sv,
    "9e18"sv,
    "1e15"sv,
    "0.1"sv,
    "1e-320"sv,
    "1e308"sv,
    "-1e308"sv,
    "1e309"sv,
    "1e-400"sv,
    "NaN"sv,
    "nan"sv,
    "inf"sv,
    "-Infinity"sv,
    "1e"sv,
    "0x10"sv,
    "007"sv,
    "1.0"sv,
    "null"sv,
    "true"sv,
};

/// Text that is not UTF-8, half a surrogate, a null character, JSON punctuation, and markers of our
/// own formats.
constexpr std::array odd_texts{
    "\xff"sv, "\xc3"sv, "\\ud800"sv, "\\u0000"sv, "\0"sv,       "\xef\xbb\xbf"sv,
    "~1"sv,   "{}"sv,   "[]"sv,      "\"\""sv,    "\n--set "sv,
};

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.' ||
         letter == '-' || letter == '+';
}

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

/// Returns the end of the quoted text that begins at `at`. An unclosed quote is a token of one
/// character.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  for (std::size_t end = at + 1; end < text.size() && text[end] != '\n'; ++end)
    if (text[end] == '"' && text[end - 1] != '\\')
      return end + 1;
  return at + 1;
}

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    TokenKind kind = TokenKind::Other;
    if (text[at] == '"') {
      kind = TokenKind::Quoted;
      end = end_of_quoted(text, at);
    } else if (is_word(text[at])) {
      kind = is_digit(text[at]) || text[at] == '-' ? TokenKind::Number : TokenKind::Word;
      while (end < text.size() && is_word(text[end]))
        ++end;
    }
    if (text[at] != ' ')
      tokens.push_back({kind, at, end - at});
    at = end;
  }
  return tokens;
}

Mutator::Mutator(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {
  std::array<std::set<std::string>, 4> words;
  std::set<char> letters{'"', '\\', '{', '[', ',', ':', '-', '\n', '\0'};
  for (const std::string& text : corpus_) {
    letters.insert(text.begin(), text.end());
    for (const Token& token : tokens_of(text))
      words[static_cast<std::size_t>(token.kind)].insert(text.substr(token.at, token.size));
  }
  for (std::size_t kind = 0; kind < words.size(); ++kind)
    tokens_[kind].assign(words[kind].begin(), words[kind].end());
  auto& others = tokens_[static_cast<std::size_t>(TokenKind::Other)];
  others.insert(others.end(), odd_texts.begin(), odd_texts.end());
  letters_.assign(letters.begin(), letters.end());
}

std::string Mutator::next() {
  std::string text = any_text();
  for (std::size_t times = below(2) == 0 ? 1 : 2 + below(4); times > 0; --times)
    mutate(text);
  if (text.size() > longest_text)
    text.resize(longest_text);
  return text;
}

/// Returns an empty string if the corpus has no such token.
const std::string& Mutator::any_token(TokenKind kind) {
  static const std::string none;
  const auto& tokens = tokens_[static_cast<std::size_t>(kind)];
  return tokens.empty() ? none : tokens[below(tokens.size())];
}

const std::string& Mutator::any_token() {
  return any_token(static_cast<TokenKind>(below(tokens_.size())));
}

std::string_view Mutator::extreme_number() {
  return extreme_numbers[below(extreme_numbers.size())];
}

void Mutator::mutate(std::string& text) {
  if (below(4) == 0)
    mutate_letters(text);
  else
    mutate_tokens(text);
}

void Mutator::mutate_letters(std::string& text) {
  const std::size_t at = below(text.size());
  switch (below(5)) {
    case 0:
      text.insert(at, 1, any_letter());
      break;
    case 1:
      if (!text.empty())
        text[at] = any_letter();
      break;
    case 2:
      text.erase(at, below(8));
      break;
    case 3:
      if (!text.empty())
        std::swap(text[at], text[below(text.size())]);
      break;
    default: {
      const std::string& other = any_text();
      text.insert(at, other.substr(below(other.size()), below(40)));
    }
  }
}

void Mutator::mutate_tokens(std::string& text) {
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty()) {
    text += any_token();
    return;
  }
  const Token token = tokens[below(tokens.size())];
  switch (below(12)) {
    case 0:
      text.replace(token.at, token.size, any_token());
      break;
    case 1:
      text.insert(token.at, any_token());
      break;
    case 2:
      text.erase(token.at, token.size);
      break;
    case 3:
      swap_tokens(text, tokens);
      break;
    case 4:
      repeat(text, tokens);
      break;
    case 5:
      nest(text, token);
      break;
    case 6:
      move_line(text);
      break;
    case 7:
    case 8:
      change_number(text, tokens);
      break;
    default:
      text.replace(token.at, token.size, any_token(token.kind));
  }
}

/// Replaces a number, which may be inside a word: the stage of "0SEND_F2".
void Mutator::change_number(std::string& text, const std::vector<Token>& tokens) {
  std::vector<Token> numbers;
  for (const Token& token : tokens) {
    std::size_t at = token.at;
    for (; at < token.at + token.size && !is_digit(text[at]);)
      ++at;
    std::size_t end = at;
    const bool whole = at == token.at || text[at - 1] == '-';
    for (; end < token.at + token.size && (is_digit(text[end]) || (whole && text[end] == '.'));)
      ++end;
    if (end > at)
      numbers.push_back({TokenKind::Number, at, end - at});
  }
  if (numbers.empty())
    return;
  const Token number = numbers[below(numbers.size())];
  text.replace(number.at, number.size, extreme_number());
}

void Mutator::swap_tokens(std::string& text, const std::vector<Token>& tokens) {
  std::size_t a = below(tokens.size());
  std::size_t b = below(tokens.size());
  if (a == b)
    return;
  if (a > b)
    std::swap(a, b);
  const std::string first = text.substr(tokens[a].at, tokens[a].size);
  const std::string second = text.substr(tokens[b].at, tokens[b].size);
  text.replace(tokens[b].at, tokens[b].size, first);
  text.replace(tokens[a].at, tokens[a].size, second);
}

/// Repeats a few consecutive tokens, up to three hundred times.
void Mutator::repeat(std::string& text, const std::vector<Token>& tokens) {
  const std::size_t first = below(tokens.size());
  const std::size_t last = std::min(tokens.size() - 1, first + below(12));
  const std::size_t begin = tokens[first].at;
  const std::string part = text.substr(begin, tokens[last].at + tokens[last].size - begin);
  std::string repeated;
  for (std::size_t times = below(8) == 0 ? below(300) : 1 + below(3); times > 0; --times)
    repeated += part;
  text.insert(begin, repeated.substr(0, longest_text));
}

/// Puts brackets around a token, sometimes deeper than any reader accepts.
void Mutator::nest(std::string& text, const Token& token) {
  constexpr std::array pairs{"[]"sv, "()"sv, "{}"sv};
  const auto pair = pairs[below(pairs.size())];
  const std::size_t depth = below(8) == 0 ? below(5000) : 1 + below(3);
  text.insert(token.at + token.size, depth, pair[1]);
  text.insert(token.at, depth, pair[0]);
}

/// Moves or duplicates a line.
void Mutator::move_line(std::string& text) {
  const auto start_of_line = [&](std::size_t at) {
    const std::size_t found = text.rfind('\n', at);
    return found == std::string::npos ? 0 : found + 1;
  };
  const std::size_t begin = start_of_line(below(text.size()));
  const std::size_t end = text.find('\n', begin);
  const std::string line = text.substr(begin, end == std::string::npos ? end : end + 1 - begin);
  if (below(2) == 0)
    text.erase(begin, line.size());
  text.insert(start_of_line(below(text.size())), line);
}

}  // namespace pipewright::fuzz
