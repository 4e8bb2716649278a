// The configuration that a function of a Python file returns: torchtitan's since 0.3. Assignments
// to its fields, calls of configuration classes and calls of functions of the same file are
// followed; a statement that could change it in another way is rejected.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipewright/plan/error.hpp"
#include "trainers/given_fields.hpp"
#include "trainers/python_values.hpp"

namespace pipewright::models {
namespace {

using Kind = PythonValue::Kind;
using TokenKind = PythonToken::Kind;

/// The variables of a function.
struct Variables {
  std::map<std::string, PythonValue> values;
  std::set<std::string> aliases;  // variables that Python binds to the object of another one
};

std::vector<std::string> parts_of(const std::string& dotted) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', at), dotted.size());
    parts.push_back(dotted.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

class PythonFile {
 public:
  PythonFile(std::string_view text, const std::string& name)
      : name_(name), lines_(python_lines(text, name)) {
    for (std::size_t at = 0; at < lines_.size(); ++at)
      if (const PythonLine& line = lines_[at];
          line.front().column == 1 && line.front().is_word("def") && line.size() > 1)
        functions_[line[1].text] = at;
  }

  /// Returns the name of the only function, or throws InputError that lists all.
  std::string only_function() const {
    if (functions_.size() == 1)
      return functions_.begin()->first;
    std::string names;
    for (const auto& [function, line] : functions_)
      names += (names.empty() ? "" : ", ") + function;
    throw plan::InputError(
        functions_.empty()
            ? fmt::format("{}: a function that returns a configuration is needed here", name_)
            : fmt::format("{}: its functions are {}: name one, as in {}:{}", name_, names, name_,
                          functions_.begin()->first));
  }

  PythonValue result_of(const std::string& function) {
    const auto found = functions_.find(function);
    if (found == functions_.end())
      throw plan::InputError(fmt::format("{}: it has no function \"{}\"", name_, function));
    if (++calls_ > 200)
      throw plan::InputError(
          fmt::format("{}: {}() calls itself, or too many functions", name_, function));
    return run(found->second);
  }

 private:
  std::string place(const PythonToken& token) const {
    return fmt::format("{}:{}:{}", name_, token.line, token.column);
  }

  /// Runs the statements below the line of a `def`.
  PythonValue run(std::size_t header) {
    Variables variables;
    const int outer = lines_[header].front().column;
    const int inner = header + 1 < lines_.size() ? lines_[header + 1].front().column : 0;
    bool skips = false;  // within a nested function or class
    for (std::size_t at = header + 1; at < lines_.size(); ++at) {
      const PythonLine& line = lines_[at];
      if (line.front().column <= outer)
        break;
      if (line.front().column > inner && skips)
        continue;
      const PythonToken& first = line.front();
      skips = first.is_word("def") || first.is_word("class");
      if (first.is_word("return")) {
        std::size_t token = 1;
        return resolved(read_value(line, token, name_), variables);
      }
      if (!skips && !is_without_effect(line))
        assign(line, variables);
    }
    throw plan::InputError(
        fmt::format("{}: this function returns nothing", place(lines_[header].front())));
  }

  static bool is_without_effect(const PythonLine& line) {
    const PythonToken& first = line.front();
    return first.is_word("from") || first.is_word("import") || first.is_word("assert") ||
           first.is_word("pass") || first.is_sign("@") ||
           (first.kind == TokenKind::Text && line.size() == 1);
  }

  void assign(const PythonLine& line, Variables& variables) {
    std::size_t sign = 0;
    std::string path;
    for (; sign < line.size() && (line[sign].kind == TokenKind::Word || line[sign].is_sign("."));
         ++sign)
      path += line[sign].text;
    if (sign < line.size() && line[sign].is_sign(":"))  // a type follows
      sign = static_cast<std::size_t>(
          std::ranges::find_if(line, [](const PythonToken& token) { return token.is_sign("="); }) -
          line.begin());
    const bool is_assignment = !path.empty() && sign + 1 < line.size() && line[sign].is_sign("=") &&
                               !has_second_target(line, sign + 1);
    if (!is_assignment)
      throw plan::InputError(
          fmt::format("{}: Python is not run, so this statement cannot be followed: only "
                      "assignments to fields and a return can",
                      place(line.front())));
    std::size_t from = sign + 1;
    put(path, read_value(line, from, name_), line, variables);
  }

  /// Returns true for comparisons and for `a = b = c`.
  static bool has_second_target(const PythonLine& line, std::size_t from) {
    int open = 0;
    for (std::size_t at = from; at < line.size(); ++at) {
      const PythonToken& token = line[at];
      open += token.is_sign("(") || token.is_sign("[") || token.is_sign("{") ? 1 : 0;
      open -= token.is_sign(")") || token.is_sign("]") || token.is_sign("}") ? 1 : 0;
      if (open == 0 && token.is_sign("="))
        return true;
    }
    return false;
  }

  void put(const std::string& path, PythonValue value, const PythonLine& line,
           Variables& variables) {
    const std::vector<std::string> parts = parts_of(path);
    const bool is_alias =
        value.kind == Kind::Name && variables.values.contains(parts_of(value.name).front());
    value = resolved(std::move(value), variables);
    if (parts.size() == 1) {
      variables.values[path] = std::move(value);
      variables.aliases.erase(path);
      if (is_alias)
        variables.aliases.insert(path);
      return;
    }
    const auto found = variables.values.find(parts.front());
    if (found == variables.values.end() || found->second.kind != Kind::Call ||
        variables.aliases.contains(parts.front()))
      throw plan::InputError(
          fmt::format("{}: assign to a field of the returned configuration, not to one of \"{}\"",
                      place(line.front()), parts.front()));
    PythonValue* at = &found->second;
    for (std::size_t part = 1; part + 1 < parts.size(); ++part) {
      if (at->find(parts[part]) == nullptr)
        at->set(parts[part], {.kind = Kind::Call, .set_by = at->set_by, .place = at->place});
      at = at->find(parts[part]);
      if (at->kind != Kind::Call)
        *at = {.kind = Kind::Call, .set_by = parts[part], .place = at->place};
    }
    at->set(parts.back(), std::move(value));
  }

  /// Replaces variables and calls of this file's functions by their values.
  PythonValue resolved(PythonValue value, const Variables& variables) {
    for (auto& [field, item] : value.fields)
      item = resolved(std::move(item), variables);
    for (PythonValue& item : value.items)
      item = resolved(std::move(item), variables);
    if (value.kind == Kind::Call && functions_.contains(value.name))
      return result_of(value.name);
    if (value.kind == Kind::Call && !is_config(value.name))
      value.set_by = value.name;
    if (value.kind != Kind::Name)
      return value;
    const std::vector<std::string> parts = parts_of(value.name);
    const auto found = variables.values.find(parts.front());
    if (found == variables.values.end())
      return value;
    PythonValue at = found->second;
    for (std::size_t part = 1; part < parts.size(); ++part) {
      const PythonValue* const next = at.find(parts[part]);
      if (next == nullptr)
        return {.place = value.place};
      at = PythonValue(*next);
    }
    return at;
  }

  const std::string& name_;
  std::vector<PythonLine> lines_;
  std::map<std::string, std::size_t> functions_;  // the line of each
  int calls_ = 0;
};

/// Returns the configuration that torchtitan's `default_adamw` makes.
PythonValue adamw_config(PythonValue call) {
  if (call.items.size() == 1 && call.find("lr") == nullptr)
    call.set("lr", call.items.front());
  PythonValue settings{.kind = Kind::Call, .name = "{}", .place = call.place};
  settings.set("lr", {.kind = Kind::Literal, .literal = 8e-4});
  settings.set("weight_decay", {.kind = Kind::Literal, .literal = 0.1});
  for (auto& [field, value] : call.fields)
    settings.set(field, std::move(value));
  PythonValue group{.kind = Kind::Call, .name = "{}", .place = call.place};
  group.set("optimizer_name", {.kind = Kind::Literal, .literal = "AdamW"});
  group.set("optimizer_kwargs", std::move(settings));
  PythonValue config{.kind = Kind::Call, .name = "OptimizersContainer.Config", .place = call.place};
  config.set("param_groups",
             {.kind = Kind::List, .items = {std::move(group)}, .place = call.place});
  return config;
}

bool is_config_call(const PythonValue& value) {
  return value.kind == Kind::Call && value.name != "{}" &&
         (is_config(value.name) || value.name == "model_registry");
}

/// Adds the fields of a configuration, and of those that it consists of. `section`: "parallelism.".
void add_fields(const std::string& section, const PythonValue& config, GivenFields& given) {
  for (const auto& [name, value] : config.fields) {
    const std::string field = section + name;
    const PythonValue all = value.kind == Kind::Call && value.name.ends_with("default_adamw")
                                ? adamw_config(value)
                                : value;
    if (!is_config_call(all)) {
      given.add(field, {literal_of(all), all.place});
      continue;
    }
    const bool is_policy = field == "activation_checkpoint";  // its class is its value
    if (is_policy)
      given.add(field,
                {all.name.empty() ? std::optional<plan::Json>() : plan::Json(all.name), all.place});
    given.set_by(field, all.items.empty() ? all.set_by : "an argument without a name");
    add_fields(field + ".", all, given);
  }
}

}  // namespace

GivenFields python_fields(std::string_view text, const std::string& name,
                          const std::string& function) {
  PythonFile file(text, name);
  const PythonValue config = file.result_of(function.empty() ? file.only_function() : function);
  if (config.kind != Kind::Call)
    throw plan::InputError(
        fmt::format("{}: a returned configuration is needed here, such as Trainer.Config(...)",
                    config.place.empty() ? name : config.place));
  GivenFields given(name, {});
  given.set_by("", config.set_by);
  add_fields("", config, given);
  return given;
}

}  // namespace pipewright::models
