#pragma once

// Values that Python's pickle has written, of protocols 2 to 5, as a tree that nobody runs: what
// Python would call stays written down as a call. Only the opcodes that plain containers and
// objects take are known, and only names that the caller expects.

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

struct PickleNode {
  enum class Kind { None, Flag, Integer, Number, Text, List, Dict, Global, Call, Persistent };
  Kind kind = Kind::None;
  std::int64_t offset = 0;   // of the opcode that made it
  std::int64_t integer = 0;  // of a Flag, too
  double number = 0;
  std::string text{};  // of a Global "module name"
  /// Of a List, which a tuple is, too, its items; of a Dict keys and values in turn; of a Call what
  /// is called and its arguments; of a Persistent its name.
  std::vector<PickleNode*> items{};
  PickleNode* state = nullptr;  // that a Call was given behind it

  bool is(Kind which) const { return kind == which; }
  bool is_text(std::string_view wanted) const { return kind == Kind::Text && text == wanted; }
  bool is_call_of(std::string_view global) const {
    return kind == Kind::Call && items[0]->kind == Kind::Global && items[0]->text == global;
  }
  /// The last value of a Dict under this key; null where there is none.
  const PickleNode* find(std::string_view key) const;
};

/// Owns its nodes.
struct Pickled {
  std::deque<PickleNode> nodes;
  const PickleNode* root = nullptr;
};

/// `globals`: names that may occur, as "module name". Throws InputError that names `file`, the
/// offset and what stands there for everything else. Linear in the length, in time and memory.
Pickled parse_pickle(std::string_view bytes, const std::string& file,
                     const std::set<std::string>& globals);

}  // namespace pipewright::plan
