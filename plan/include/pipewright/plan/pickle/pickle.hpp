#pragma once

// Reads Python pickles of protocols 2 to 5 as a tree, without running anything: a call stays in the
// tree as a call. Only the opcodes of plain containers and objects are supported, and only names
// that the caller allows.

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

/// A value of a pickle.
struct PickleNode {
  enum class Kind { None, Flag, Integer, Number, Text, List, Dict, Global, Call, Persistent };
  Kind kind = Kind::None;
  std::int64_t offset = 0;   // position of its opcode
  std::int64_t integer = 0;  // also used for a Flag
  double number = 0;
  std::string text{};  // for a Global: "module name"
  /// The items of a List (also used for tuples); keys and values in turn of a Dict; the callee and
  /// its arguments of a Call; the name of a Persistent.
  std::vector<PickleNode*> items{};
  PickleNode* state = nullptr;  // state that is set on the result of a Call

  bool is(Kind which) const { return kind == which; }
  bool is_text(std::string_view wanted) const { return kind == Kind::Text && text == wanted; }
  bool is_call_of(std::string_view global) const {
    return kind == Kind::Call && items[0]->kind == Kind::Global && items[0]->text == global;
  }
  /// Returns the last value of a Dict under this key, or null if there is none.
  const PickleNode* find(std::string_view key) const;
};

/// A parsed pickle, which owns its nodes.
struct Pickled {
  std::deque<PickleNode> nodes;
  const PickleNode* root = nullptr;
};

/// `globals` are the allowed names, as "module name". For anything else, throws InputError that
/// names `file`, the offset and the unexpected content. Takes time and memory linear in the length.
Pickled parse_pickle(std::string_view bytes, const std::string& file,
                     const std::set<std::string>& globals);

}  // namespace pipewright::plan
