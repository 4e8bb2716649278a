#pragma once

// Reads the graph of an exported program from models/model.json of its archive (torch's
// torch/_export/serde/schema.py, version 8).

#include <map>
#include <string>
#include <vector>

#include "pipewright/plan/exported/exported_program.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

class GraphReader {
 public:
  explicit GraphReader(const std::string& file) : file_(file) {}

  /// Reads everything but the places of the weights in the archive. The inputs include the targets.
  ExportedProgram read(const Json& model);

  // Each of these returns a member of an object. `whose` names the object in error messages.
  const Json& member(const Json& object, const std::string& key, const std::string& whose) const;
  const Json& object(const Json& object, const std::string& key, const std::string& whose) const;
  const Json& array(const Json& object, const std::string& key, const std::string& whose) const;
  std::string text(const Json& object, const std::string& key, const std::string& whose) const;
  std::int64_t length(const Json& said, const std::string& whose) const;
  std::vector<std::int64_t> lengths(const Json& object, const std::string& key,
                                    const std::string& whose) const;
  ExportedTensor tensor(const std::string& name, const Json& meta) const;

 private:
  using Names = std::map<std::string, int>;

  void read_input(const std::string& kind, const Json& spec, const Json& graph, Names& names);
  /// `depth` is the nesting level of graphs in graphs. `names` holds the names of this graph only.
  void read_nodes(const Json& graph, Names& names, bool with_gradient, int depth);
  void read_node(const Json& node, const Json& graph, Names& names, bool with_gradient, int depth);
  void read_call(const Json& node, const Json& graph, Names& names, bool with_gradient);
  void read_block(const Json& node, Names& names, bool with_gradient, std::size_t leading,
                  int depth);
  void read_outputs(const Json& node, const Json& graph, ExportedNode& made, Names& names);
  int value(const Json& said, const Names& names, const std::string& whose) const;
  int made_value(const std::string& name, const Json& graph, Names& names);
  [[noreturn]] void refuse(const std::string& whose, const std::string& what) const;
  void fault(const Json& node, const std::string& what);

  const std::string& file_;
  ExportedProgram program_;
  std::vector<std::string> faults_;
};

}  // namespace pipewright::plan
