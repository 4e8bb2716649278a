#include "trainers/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

using Kind = PythonValue::Kind;
using TokenKind = PythonToken::Kind;

PythonValue literal(plan::Json json) { return {.kind = Kind::Literal, .literal = std::move(json)}; }

PythonValue number_of(const std::string& text, bool is_negative) {
  std::int64_t whole = 0;
  double real = 0;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ptr == end && read.ec == std::errc{})
    return literal(is_negative ? -whole : whole);
  if (const auto read = std::from_chars(text.data(), end, real);
      read.ptr == end && read.ec == std::errc{})
    return literal(is_negative ? -real : real);
  return {};
}

class ValueReader {
 public:
  ValueReader(const PythonLine& line, std::size_t& at, const std::string& file)
      : line_(line), at_(at), file_(file) {}

  PythonValue value() {
    const std::size_t start = at_;
    if (++depth_ > 100)
      throw plan::InputError(fmt::format("{}: brackets are nested too deeply", place(start)));
    PythonValue value = simple();
    if (!is_over()) {
      value = {};
      skip();
    }
    value.place = place(start);
    --depth_;
    return value;
  }

 private:
  bool has(std::size_t ahead = 0) const { return at_ + ahead < line_.size(); }
  bool is_sign(std::string_view sign, std::size_t ahead = 0) const {
    return has(ahead) && line_[at_ + ahead].is_sign(sign);
  }
  std::string place(std::size_t token) const {
    const PythonToken& at = line_[std::min(token, line_.size() - 1)];
    return fmt::format("{}:{}:{}", file_, at.line, at.column);
  }
  bool is_over() const {
    return !has() || is_sign(",") || is_sign(")") || is_sign("]") || is_sign("}") || is_sign(":");
  }
  /// Skips an expression that is not understood.
  void skip() {
    bool is_lambda = false;  // its parameters have commas, up to a colon
    for (int open = 0; has(); ++at_) {
      if (open == 0 && !is_lambda && is_over())
        return;
      is_lambda = (is_lambda && !is_sign(":")) || line_[at_].is_word("lambda");
      open += is_sign("(") || is_sign("[") || is_sign("{") ? 1 : 0;
      open -= is_sign(")") || is_sign("]") || is_sign("}") ? 1 : 0;
    }
  }

  PythonValue simple() {
    if (!has())
      return {};
    const PythonToken& token = line_[at_];
    if (token.kind == TokenKind::Number)
      return ++at_, number_of(token.text, false);
    if (token.is_sign("-") && has(1) && line_[at_ + 1].kind == TokenKind::Number)
      return at_ += 2, number_of(line_[at_ - 1].text, true);
    if (token.kind == TokenKind::Text)
      return text();
    if (token.kind == TokenKind::Word)
      return name();
    if (token.is_sign("("))
      return list(")");
    if (token.is_sign("["))
      return list("]");
    if (token.is_sign("{"))
      return dictionary();
    return {};
  }

  PythonValue text() {
    std::string all;
    while (has() && line_[at_].kind == TokenKind::Text)
      all += line_[at_++].text;
    return literal(all);
  }

  PythonValue name() {
    PythonValue value{.kind = Kind::Name};
    value.name = line_[at_++].text;
    while (is_sign(".") && has(1) && line_[at_ + 1].kind == TokenKind::Word) {
      value.name += "." + line_[at_ + 1].text;
      at_ += 2;
    }
    if (value.name == "None")
      return literal(nullptr);
    if (value.name == "True" || value.name == "False")
      return literal(value.name == "True");
    if (value.name == "math.inf")
      return literal(std::numeric_limits<double>::infinity());
    if (is_sign("("))
      return call(std::move(value));
    return value;
  }

  PythonValue call(PythonValue value) {
    value.kind = Kind::Call;
    for (++at_; has() && !is_sign(")");) {
      if (line_[at_].kind == TokenKind::Word && is_sign("=", 1) && !is_sign("=", 2)) {
        const std::string field = line_[at_].text;
        at_ += 2;
        value.set(field, this->value());
      } else {
        if (is_sign("*"))
          value.set_by = "an unpacked argument";
        value.items.push_back(this->value());
      }
      if (!next(")"))
        return {};
    }
    ++at_;
    if (value.name == "float" && value.items.size() == 1 && value.items[0].literal == "inf")
      return literal(std::numeric_limits<double>::infinity());
    return value;
  }

  PythonValue list(std::string_view end) {
    PythonValue value{.kind = Kind::List};
    bool has_comma = false;
    for (++at_; has() && !is_sign(end);) {
      value.items.push_back(this->value());
      has_comma = has_comma || is_sign(",");
      if (!next(end))
        return {};
    }
    ++at_;
    if (end == ")" && value.items.size() == 1 && !has_comma)
      return std::move(value.items.front());
    return value;
  }

  PythonValue dictionary() {
    PythonValue value{.kind = Kind::Call, .name = "{}"};
    for (++at_; has() && !is_sign("}");) {
      const PythonValue key = this->value();
      if (!is_sign(":") || !key.literal.is_string())
        return {};
      ++at_;
      value.set(key.literal.get<std::string>(), this->value());
      if (!next("}"))
        return {};
    }
    ++at_;
    return value;
  }

  /// Moves to the next item. Returns false if neither an item nor the bracket at the end follows.
  bool next(std::string_view end) {
    if (is_sign(","))
      return ++at_, true;
    return is_sign(end);
  }

  const PythonLine& line_;
  std::size_t& at_;
  const std::string& file_;
  int depth_ = 0;
};

}  // namespace

PythonValue* PythonValue::find(const std::string& field) {
  const auto found = std::ranges::find(fields, field, &std::pair<std::string, PythonValue>::first);
  return found == fields.end() ? nullptr : &found->second;
}

void PythonValue::set(const std::string& field, PythonValue value) {
  if (PythonValue* const old = find(field))
    *old = std::move(value);
  else
    fields.emplace_back(field, std::move(value));
}

bool is_config(const std::string& callee) {
  return callee.empty() || callee == "{}" || callee.ends_with("Config");
}

std::optional<plan::Json> literal_of(const PythonValue& value) {
  if (value.kind == Kind::Literal)
    return value.literal;
  if (value.kind == Kind::List) {
    plan::Json list = plan::Json::array();
    for (const PythonValue& item : value.items)
      if (auto json = literal_of(item))
        list.push_back(*std::move(json));
      else
        return {};
    return list;
  }
  if (value.kind != Kind::Call || !is_config(value.name) || !value.set_by.empty() ||
      !value.items.empty())
    return {};
  plan::Json object = plan::Json::object();
  for (const auto& [field, item] : value.fields)
    if (auto json = literal_of(item))
      object[field] = *std::move(json);
    else
      return {};
  return object;
}

PythonValue read_value(const PythonLine& line, std::size_t& at, const std::string& file) {
  return ValueReader(line, at, file).value();
}

}  // namespace pipewright::models
