// Files written by Python's torch (tests/hugging_face/torch_files.py): their tensors are read, but
// code in them is never run.

#include "pipewright/exec/checkpoint/torch_file.hpp"

#include <ATen/ATen.h>

#include <fstream>
#include <iterator>

#include "pipewright/exec/checkpoint/deepspeed_files.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace torch_file_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;

const std::filesystem::path data = std::filesystem::path(PIPEWRIGHT_TEST_DATA_DIR) / "torch_files";

/// Returns 100·index, 100·index + 1 and so on.
at::Tensor numbers(int index, at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return (100 * index + at::arange(c10::multiply_integers(sizes))).to(type).view(sizes);
}

std::string with(std::string bytes, const std::string& old, const std::string& now) {
  const auto at = bytes.find(old);
  REQUIRE(at != std::string::npos);
  REQUIRE(old.size() == now.size());
  return bytes.replace(at, old.size(), now);
}

TEST_CASE("Tensors of a state_dict are read with their types, sizes and strides", "[exec]") {
  const StateDict first = read_torch_file(data / "layers/layer_00-model_00-model_states.pt");
  CHECK(first.size() == 2);
  CHECK(at::equal(first.at("weight"), numbers(1, {2, 3})));
  CHECK(at::equal(first.at("bias"), numbers(2, {2})));
  CHECK(read_torch_file(data / "layers/layer_01-model_00-model_states.pt").empty());
  const StateDict last = read_torch_file(data / "layers/layer_02-model_00-model_states.pt");
  CHECK(last.at("weight").scalar_type() == at::kBFloat16);
  CHECK(last.at("weight").strides() == at::IntArrayRef({1, 4}));
  CHECK(at::equal(last.at("weight"), numbers(1, {2, 4}, at::kBFloat16).t()));
}

TEST_CASE("An engine's file yields its module's weights, whatever else the file holds", "[exec]") {
  const auto file = data / "mp_rank_00_model_states.pt";
  const StateDict all = below(read_torch_file(file), "module");
  CHECK(all.size() == 3);
  CHECK(at::equal(all.at("0.weight"), numbers(1, {2, 3})));
  CHECK(at::equal(all.at("0.bias"), at::tensor({201.0F, 202.0F})));  // a view within its storage
  CHECK(at::equal(all.at("steps"), at::scalar_tensor(7, at::kLong)));
  const NamedWeights weights = deepspeed_module(file);
  CHECK(at::equal(weights.read("0.weight"), all.at("0.weight")));
  CHECK(weights.sizes.at("0.bias") == std::vector<std::int64_t>{2});
  CHECK(error_of([&] { deepspeed_module(data / "refused.pt"); }).find("posix system") !=
        std::string::npos);
  const auto layer = data / "layers/layer_00-model_00-model_states.pt";
  CHECK(error_of([&] { deepspeed_module(layer); }) ==
        layer.string() +
            ": has no tensor under \"module\". The weights of a PipelineModule are in the layer "
            "files of the same folder");
}

TEST_CASE("A pickle that would run code is rejected with its name and offset", "[exec]") {
  const auto file = data / "refused.pt";
  CHECK(error_of([&] { read_torch_file(file); }) ==
        file.string() +
            ", data.pkl: byte 178: the name 'posix system' is not one that such a file needs; "
            "nothing is run");
}

TEST_CASE("A truncated or changed torch file is rejected with an error message", "[exec]") {
  const test::TempFolder folder;
  const std::string whole = test::bytes_of_file(data / "layers/layer_00-model_00-model_states.pt");
  const auto refusal = [&](const std::string& bytes) {
    const auto file = folder.write("file.pt", bytes);
    const std::string said = error_of([&] { read_torch_file(file); });
    REQUIRE(said.starts_with(file.string()));
    return said.substr(file.string().size());
  };
  CHECK(refusal("hello") == ": it is not a zip archive, or is truncated: no directory at its end");
  CHECK(refusal(whole.substr(0, whole.size() - 1)) ==
        ": it is not a zip archive, or is truncated: no directory at its end");
  CHECK(refusal("") == ": it is empty");
  CHECK(refusal(with(whole, "torch\nFloatStorage", "torch\nOtherStorage")) ==
        ", data.pkl: byte 98: the name 'torch OtherStorage' is not one that such a file needs; "
        "nothing is run");
  CHECK(refusal(with(whole, "little", "bigger")) == ": its byte order is not that of this machine");
  // Changes the number of rows, at byte 147 of the pickle: K\x02K\x03 are the sizes.
  CHECK(refusal(with(whole, "K\x02K\x03", "K\x03K\x03")) ==
        ", data.pkl: byte 170: a tensor [3, 3] with strides [3, 1] from element 0 on exceeds its "
        "storage of 6 elements");
  CHECK(refusal(with(whole, "K\x06tq", "K\x07tq")) ==
        ", data.pkl: byte 140: storage '0' of 7 elements has only 24 bytes");
  CHECK(refusal(with(whole, "u}q", "\xff}q")) ==
        ", data.pkl: byte 233: opcode 0xff is not one that such a file needs");
  // Every truncated file is rejected.
  for (std::size_t length = 1; length < whole.size(); length += 7)
    CHECK(refusal(whole.substr(0, length)) != "no error");
}

TEST_CASE("Layers' files are the weights of a model with these layers", "[exec]") {
  const NamedWeights weights = deepspeed_layers(data / "layers", {"first", "act", "last"});
  std::vector<std::string> names;
  for (const auto& [name, sizes] : weights.sizes)
    names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"first.bias", "first.weight", "last.bias", "last.weight"});
  CHECK(at::equal(weights.read("first.weight"), numbers(1, {2, 3})));

  CHECK(error_of([&] {
          deepspeed_layers(data / "layers", {"first", "act"});
        }) == (data / "layers/layer_02-model_00-model_states.pt").string() +
                  ": is for layer 2, but the model has 2 layers");
  CHECK(error_of([&] { deepspeed_layers(data, {"first"}); }) ==
        data.string() + ": has no layer files such as layer_00-model_00-model_states.pt");
  const test::TempFolder folder;
  for (const char* const name :
       {"layer_00-model_00-model_states.pt", "layer_00-model_01-model_states.pt"})
    folder.write(name, test::bytes_of_file(data / "layers/layer_00-model_00-model_states.pt"));
  CHECK(error_of([&] { deepspeed_layers(folder.path(), {"first"}); }) ==
        folder.path().string() +
            ": layer 0 is stored in 2 files, one for each tensor-parallel rank, but only layers of "
            "one file can be read");
}

TEST_CASE("DeepSpeed's files are named by layer and by the rank's coordinates", "[exec]") {
  const auto topology = plan::pipe_data_model_topology(2, 2, 2);
  CHECK(ckpt_prefix("ckpt", "global_step10", topology, 5) ==
        "ckpt/global_step10/module-pipe_01-model_01");
  CHECK(ckpt_prefix("ckpt", "t", plan::pipe_data_topology(2, 2), 3) == "ckpt/t/module-pipe_01");
  CHECK(ckpt_layer_path("ckpt", 3, topology, 5) == "ckpt/layer_03-model_01-model_states.pt");
  CHECK(ckpt_layer_path("ckpt", 12, plan::pipe_data_topology(2, 2), 0) ==
        "ckpt/layer_12-model_states.pt");
  CHECK(ckpt_layer_path_list(data / "layers", 2) ==
        std::vector{data / "layers/layer_02-model_00-model_states.pt"});
  CHECK(ckpt_layer_path_list(data / "layers", 7).empty());
}

}  // namespace torch_file_test
