#include "pipewright/plan/exported/exported_program.hpp"

#include <algorithm>
#include <cstring>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/exported_archive.hpp"

namespace pipewright::plan {
namespace {

using test::error_of;
using test::ExportedArchive;

const ExportedNode& node_called(const ExportedProgram& program, const std::string& name) {
  const auto found = std::ranges::find(program.nodes, name, &ExportedNode::name);
  REQUIRE(found != program.nodes.end());
  return *found;
}

const std::string& name_of(const ExportedProgram& program, int value) {
  return program.values.at(static_cast<std::size_t>(value)).name;
}

TEST_CASE("Reads operators, arguments, weights, inputs and marks", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  REQUIRE(program.inputs.size() == 1);
  CHECK(name_of(program, program.inputs[0]) == "tokens");
  REQUIRE(program.targets.size() == 1);
  CHECK(name_of(program, program.targets[0]) == "targets");
  REQUIRE(program.outputs.size() == 1);
  CHECK(name_of(program, program.outputs[0]) == "cross_entropy_loss");

  const ExportedNode& linear = node_called(program, "linear");
  CHECK(linear.op == "aten::linear");
  CHECK(linear.overload.empty());
  CHECK(linear.module == "model.blocks.0.up");
  REQUIRE(linear.arguments.size() == 3);
  CHECK(linear.arguments[1].name == "weight");
  CHECK(name_of(program, std::get<TensorArgument>(linear.arguments[1].value).value) ==
        "p_model_blocks_0_up_weight");
  CHECK(node_called(program, "mul").overload == "Tensor");
  const ExportedNode& norm = node_called(program, "batch_norm");
  CHECK(std::get<bool>(norm.arguments[5].value));
  CHECK(std::get<double>(norm.arguments[6].value) == 0.1);

  REQUIRE(program.marks.size() == 1);
  CHECK(program.nodes.at(static_cast<std::size_t>(program.marks[0])).name == "linear_1");
}

TEST_CASE("Operators under torch.no_grad are in the graph without gradients", "[plan][exported]") {
  const ExportedProgram program = ExportedArchive().program();
  CHECK_FALSE(node_called(program, "sqrt").with_gradient);
  CHECK_FALSE(node_called(program, "full").with_gradient);
  CHECK(node_called(program, "mul").with_gradient);
  // The block multiplies with its result.
  const int made = node_called(program, "sqrt").outputs.at(0).values.at(0);
  CHECK(std::get<TensorArgument>(node_called(program, "mul").arguments.at(1).value).value == made);
}

TEST_CASE("The user's line is in the model, not in a library", "[plan][exported]") {
  CHECK(node_called(ExportedArchive().program(), "batch_norm").place ==
        "make.py:21: return x + F.relu_(self.norm(self.up(x) * scale))");
}

TEST_CASE("Weights have their positions in the archive, one for two names", "[plan][exported]") {
  const std::string bytes = ExportedArchive().bytes();
  const ExportedProgram program = exported_from_bytes(bytes, "model.pt2");
  const auto weight = [&](const std::string& name) {
    const auto found = std::ranges::find(program.weights, name, &ExportedWeight::name);
    REQUIRE(found != program.weights.end());
    return *found;
  };
  const ExportedWeight embed = weight("model.embed.weight"), head = weight("model.head.weight");
  CHECK(embed.begin == head.begin);
  CHECK(embed.is_trained);
  CHECK(embed.strides == std::vector<std::int64_t>{4, 1});
  CHECK_FALSE(weight("model.blocks.0.norm.running_mean").is_parameter);
  const ExportedWeight up = weight("model.blocks.0.up.weight");
  CHECK(up.end - up.begin == 128);
  float first = 0;
  std::memcpy(&first, bytes.data() + up.begin, sizeof first);
  CHECK(first == 0.5F);  // of weight 1
  CHECK(up.begin != weight("model.blocks.1.up.weight").begin);
}

TEST_CASE("All unsupported operators are named with the user's lines", "[plan][exported]") {
  ExportedArchive archive;
  archive.node("mul")["target"] = "torch.ops.higher_order.cond";
  archive.node("linear_1")["inputs"][0]["arg"] = {{"as_sym_int", {{"as_name", "s0"}}}};
  archive.node("dropout")["target"] = "_operator.mul";
  CHECK(error_of([&] { archive.program(); }) ==
        "model.pt2: cond: the computation depends on data, or is a separate graph; only plain "
        "operators can be run, at make.py:21: return x + F.relu_(self.norm(self.up(x) * "
        "scale))\nmodel.pt2: torch.ops.aten.linear.default: input: it depends on the sizes or "
        "values of the inputs, at make.py:21: return x + F.relu_(self.norm(self.up(x) * "
        "scale))\nmodel.pt2: _operator.mul: it computes with sizes or values of the inputs; only "
        "operators on tensors can be run, at make.py:40: return self.head(self.drop(x))");
}

TEST_CASE("Errors of the archive are named", "[plan][exported]") {
  ExportedArchive archive;
  SECTION("another version") {
    archive.model["schema_version"]["major"] = 9;
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: schema_version: 9: this reads what torch 2.9 to 2.11 writes, which is 8");
  }
  SECTION("weights stored in a pickle") {
    archive.weights["config"]["model.blocks.0.up.bias"]["use_pickle"] = true;
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: model.blocks.0.up.bias: its numbers are pickled, which is not supported: use "
          "a plain tensor");
  }
  SECTION("weights outside of their memory") {
    archive.weights["config"]["model.blocks.0.up.bias"]["tensor_meta"]["strides"][0]["as_int"] = 40;
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: model.blocks.0.up.bias: its numbers lie outside of its memory");
  }
  SECTION("a missing weight") {
    archive.weights["config"].erase("model.blocks.0.up.bias");
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: model.blocks.0.up.bias: its numbers are not in the file");
  }
  SECTION("a tensor that no operator produces") {
    archive.node("relu_")["inputs"][0]["arg"]["as_tensor"]["name"] = "nobody";
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: torch.ops.aten.relu_.default: it uses nobody, which nothing before it "
          "computes");
  }
  SECTION("sizes that depend on what comes in") {
    archive.model["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"][0] = {
        {"as_expr", {{"expr_str", "s0"}}}};
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: linear: its size depends on the inputs; export the module with fixed "
          "sizes, without dynamic_shapes");
  }
  SECTION("more targets than inputs") {
    archive.targets = 2;
    CHECK(error_of([&] { archive.program(); }) ==
          "model.pt2: 2 targets of 2 inputs: nothing is left to compute with");
  }
  SECTION("a file that is not an archive") {
    CHECK(error_of([] { exported_from_bytes("PK", "model.pt2"); }) ==
          "model.pt2: it is not a zip archive, or is truncated: no directory at its end");
  }
}

}  // namespace
}  // namespace pipewright::plan
