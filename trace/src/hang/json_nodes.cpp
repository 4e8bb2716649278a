#include "hang/json_nodes.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace pipewright::trace {
namespace {

using plan::PickleNode;

/// Recursion is as deep as the text's nesting, which its parser limits.
PickleNode* node_of_json(const plan::Json& json, plan::Pickled& owner) {
  PickleNode* const node = &owner.nodes.emplace_back();
  if (json.is_object()) {
    node->kind = PickleNode::Kind::Dict;
    for (const auto& [key, value] : json.items()) {
      PickleNode* const name = &owner.nodes.emplace_back();
      name->kind = PickleNode::Kind::Text;
      name->text = key;
      node->items.push_back(name);
      node->items.push_back(node_of_json(value, owner));
    }
  } else if (json.is_array()) {
    node->kind = PickleNode::Kind::List;
    for (const plan::Json& value : json)
      node->items.push_back(node_of_json(value, owner));
  } else if (json.is_string()) {
    node->kind = PickleNode::Kind::Text;
    node->text = json.get<std::string>();
  } else if (json.is_boolean()) {
    node->kind = PickleNode::Kind::Flag;
    node->integer = json.get<bool>() ? 1 : 0;
  } else if (json.is_number_integer() &&
             (!json.is_number_unsigned() ||
              json.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max())) {
    node->kind = PickleNode::Kind::Integer;
    node->integer = json.get<std::int64_t>();
  } else if (json.is_number()) {
    node->kind = PickleNode::Kind::Number;
    node->number = json.get<double>();
  }
  return node;
}

}  // namespace

plan::Pickled nodes_of_json(const plan::Json& json) {
  plan::Pickled pickled;
  pickled.root = node_of_json(json, pickled);
  return pickled;
}

}  // namespace pipewright::trace
