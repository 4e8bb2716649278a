#include "pipewright/plan/pickle/pickle.hpp"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

using Kind = PickleNode::Kind;

/// The stack machine of Python's pickletools, which never calls what a pickle names.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& file, const std::set<std::string>& globals)
      : bytes_(bytes), file_(file), globals_(globals) {}

  Pickled run() {
    while (!is_last(static_cast<unsigned char>(byte()))) {
    }
    pickled_.root = pop();
    if (!stack_.empty() || !marks_.empty())
      refuse("values are left over at the end");
    return std::move(pickled_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(fmt::format("{}: byte {}: {}", file_, began_, what));
  }

  // ---- reading from the text

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_)
      refuse(fmt::format("{} more bytes are expected, found {}", count, bytes_.size() - at_));
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  char byte() {
    began_ = at_;
    if (at_ == bytes_.size())
      refuse("unexpected end of file");
    return bytes_[at_++];
  }
  std::uint64_t number(unsigned width) {
    std::uint64_t value = 0;
    const std::string_view text = take(width);
    for (unsigned i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos)
      refuse("an unterminated name");
    const std::string_view text = take(end - at_);
    ++at_;
    return text;
  }
  /// Reads a two's-complement integer of up to eight bytes.
  std::int64_t long_integer(std::uint64_t width) {
    if (width > 8)
      refuse(fmt::format("an integer of {} bytes", width));
    const std::uint64_t value = number(static_cast<unsigned>(width));
    const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
    return width == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused;
  }
  double big_endian_double() {
    std::uint64_t value = 0;
    for (const char c : take(8))
      value = value << 8 | static_cast<unsigned char>(c);
    return std::bit_cast<double>(value);
  }

  // ---- the stack

  PickleNode* push(Kind kind) {
    PickleNode& node = pickled_.nodes.emplace_back();
    node.kind = kind;
    node.offset = static_cast<std::int64_t>(began_);
    stack_.push_back(&node);
    return &node;
  }
  void push_integer(std::int64_t value) { push(Kind::Integer)->integer = value; }
  void push_flag(bool value) { push(Kind::Flag)->integer = value ? 1 : 0; }
  void push_text(std::string_view text) { push(Kind::Text)->text = text; }
  void push_items(Kind kind, std::vector<PickleNode*> items) {
    push(kind)->items = std::move(items);
  }

  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleNode* top() const {
    if (stack_.size() <= bottom())
      refuse("a value is missing");
    return stack_.back();
  }
  PickleNode* pop() {
    PickleNode* const node = top();
    stack_.pop_back();
    return node;
  }
  std::vector<PickleNode*> pop_last(std::size_t count) {
    if (stack_.size() - bottom() < count)
      refuse("a value is missing");
    std::vector<PickleNode*> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<PickleNode*> pop_to_mark() {
    if (marks_.empty())
      refuse("a mark is missing");
    auto items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  void append_to(Kind kind, const std::vector<PickleNode*>& items) {
    PickleNode* const target = top();
    if (!target->is(kind) || (kind == Kind::Dict && items.size() % 2 != 0))
      refuse("values for an object that is not a container");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }

  // ---- operations that combine several of the above

  void push_global(std::string name) {
    if (!globals_.contains(name))
      refuse(fmt::format("the name '{}' is not one that such a file needs; nothing is run", name));
    push(Kind::Global)->text = std::move(name);
  }
  void push_global_line() {
    const std::string module(line());
    push_global(module + " " + std::string(line()));
  }
  void push_global_from_stack() {
    const auto names = pop_last(2);
    if (!names[0]->is(Kind::Text) || !names[1]->is(Kind::Text))
      refuse("a name that is not text");
    push_global(names[0]->text + " " + names[1]->text);
  }
  void call() {
    auto parts = pop_last(2);
    if (!parts[0]->is(Kind::Global) || !parts[1]->is(Kind::List))
      refuse("a call of an unnamed object");
    if (parts[0]->text == "collections OrderedDict" && parts[1]->items.empty())
      push(Kind::Dict);
    else
      push_items(Kind::Call, std::move(parts));
  }
  /// Stores the state of an object. Further attributes of an OrderedDict are ignored.
  void build() {
    PickleNode* const state = pop();
    PickleNode* const target = top();
    if (target->is(Kind::Call))
      target->state = state;
    else if (!target->is(Kind::Dict))
      refuse("a state for an object that has none");
  }
  void check_protocol(std::uint64_t protocol) const {
    if (protocol < 2 || protocol > 5)
      refuse(fmt::format("protocol {}: 2 to 5 are read", protocol));
  }
  void memoize(std::uint64_t index) { memo_[index] = top(); }
  void push_memo(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end())
      refuse(fmt::format("memo {} is empty", index));
    stack_.push_back(found->second);
  }

  /// Runs an opcode that pushes a value. Returns false for other opcodes.
  bool ran_value(unsigned char opcode) {
    switch (opcode) {
      case 'N':
        push(Kind::None);
        return true;
      case 0x88:
        push_flag(true);
        return true;
      case 0x89:
        push_flag(false);
        return true;
      case 'K':
        push_integer(static_cast<std::int64_t>(number(1)));
        return true;
      case 'M':
        push_integer(static_cast<std::int64_t>(number(2)));
        return true;
      case 'J':
        push_integer(long_integer(4));
        return true;
      case 0x8a:
        push_integer(long_integer(number(1)));
        return true;
      case 'G':
        push(Kind::Number)->number = big_endian_double();
        return true;
      case 'X':
        push_text(take(number(4)));
        return true;
      case 0x8c:
        push_text(take(number(1)));
        return true;
      case 0x8d:
        push_text(take(number(8)));
        return true;
      case 'c':
        push_global_line();
        return true;
      case 0x93:
        push_global_from_stack();
        return true;
      case 'h':
        push_memo(number(1));
        return true;
      case 'j':
        push_memo(number(4));
        return true;
      default:
        return false;
    }
  }

  /// Runs an opcode that combines values. Returns false for other opcodes.
  bool ran_container(unsigned char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case ']':
      case ')':
        push(Kind::List);
        return true;
      case '}':
        push(Kind::Dict);
        return true;
      case 't':
        push_items(Kind::List, pop_to_mark());
        return true;
      case 0x85:
        push_items(Kind::List, pop_last(1));
        return true;
      case 0x86:
        push_items(Kind::List, pop_last(2));
        return true;
      case 0x87:
        push_items(Kind::List, pop_last(3));
        return true;
      case 'a':
        append_to(Kind::List, pop_last(1));
        return true;
      case 'e':
        append_to(Kind::List, pop_to_mark());
        return true;
      case 's':
        append_to(Kind::Dict, pop_last(2));
        return true;
      case 'u':
        append_to(Kind::Dict, pop_to_mark());
        return true;
      case 'R':
      case 0x81:
        call();
        return true;
      case 'b':
        build();
        return true;
      case 'Q':
        push_items(Kind::Persistent, pop_last(1));
        return true;
      default:
        return false;
    }
  }

  /// Runs an opcode for protocol, frames or the memo. Returns false for other opcodes.
  bool ran_note(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        check_protocol(number(1));
        return true;
      case 0x95:
        number(8);
        return true;
      case 'q':
        memoize(number(1));
        return true;
      case 'r':
        memoize(number(4));
        return true;
      case 0x94:
        memoize(memo_.size());
        return true;
      default:
        return false;
    }
  }

  /// Runs one opcode. Returns true if it was the last.
  bool is_last(unsigned char opcode) {
    if (opcode == '.')
      return true;
    if (!ran_value(opcode) && !ran_container(opcode) && !ran_note(opcode))
      refuse(fmt::format("opcode {:#04x} is not one that such a file needs", opcode));
    return false;
  }

  std::string_view bytes_;
  const std::string& file_;
  const std::set<std::string>& globals_;
  std::size_t at_ = 0;
  std::size_t began_ = 0;  // offset of the current opcode
  Pickled pickled_;
  std::vector<PickleNode*> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, PickleNode*> memo_;
};

}  // namespace

const PickleNode* PickleNode::find(std::string_view key) const {
  for (std::size_t at = kind == Kind::Dict ? items.size() : 0; at >= 2; at -= 2)
    if (items[at - 2]->is_text(key))
      return items[at - 1];
  return nullptr;
}

Pickled parse_pickle(std::string_view bytes, const std::string& file,
                     const std::set<std::string>& globals) {
  return Unpickler(bytes, file, globals).run();
}

}  // namespace pipewright::plan
