#include "pipewright/exec/checkpoint/safetensors.hpp"

#include <cstring>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace safetensors_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Returns a file with this header and `data_bytes` zero bytes.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string length(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(length.data(), &size, 8);
  return length + header + std::string(data_bytes, '\0');
}

std::string refusal_of(const std::string& bytes) {
  return test::error_of([&] { parse_safetensors(bytes, "f"); });
}

TEST_CASE("Safetensors: a header has type, shape and place, padded to eight bytes",
          "[exec][checkpoint]") {
  const std::string header =
      safetensors_header({{"a", at::kFloat, {2, 3}}, {"b", at::kBFloat16, {}}});
  for (std::string name = "t"; name.size() < 9; name += 't')
    CHECK(safetensors_header({{name, at::kFloat, {}}}).size() % 8 == 0);
  CHECK(static_cast<std::size_t>(static_cast<unsigned char>(header[0])) == header.size() - 8);
  const std::string json = header.substr(8);
  CHECK(json.substr(0, json.find_last_not_of(' ') + 1) ==
        R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
        R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})");
}

TEST_CASE("Safetensors: a file of another writer is read, in any order of its header",
          "[exec][checkpoint]") {
  const std::string bytes = file_of(R"({"__metadata__":{"format":"pt"},)"
                                    R"("late":{"dtype":"I64","shape":[1],"data_offsets":[4,12]},)"
                                    R"("early":{"shape":[2,2],"dtype":"U8","data_offsets":[0,4]}})",
                                    0) +
                            std::string("\1\2\3\4\5\0\0\0\0\0\0\0", 12);
  const auto values = parse_safetensors(bytes, "f");
  REQUIRE(values.size() == 2);
  CHECK(values[0].name == "early");
  CHECK(at::equal(values[0].value, at::arange(1, 5, at::kByte).view({2, 2})));
  CHECK(values[1].name == "late");
  CHECK(at::equal(values[1].value, at::full({1}, 5, at::kLong)));
}

TEST_CASE("Safetensors: every type survives writing and reading", "[exec][checkpoint]") {
  for (const at::ScalarType dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
        at::kFloat, at::kDouble, at::kUInt16, at::kUInt32, at::kUInt64, at::kFloat8_e4m3fn,
        at::kFloat8_e5m2}) {
    const std::string bytes = safetensors_header({{"t", dtype, {3, 0}}, {"u", dtype, {2}}}) +
                              std::string(2 * c10::elementSize(dtype), '\1');
    const auto values = parse_safetensors(bytes, "f");
    CHECK(values.at(0).value.sizes() == at::IntArrayRef{3, 0});
    CHECK(values.at(1).value.scalar_type() == dtype);
  }
}

TEST_CASE("Safetensors: a type that the format lacks is rejected", "[exec][checkpoint]") {
  CHECK(test::error_of([] {
          safetensors_header({{"t", at::kComplexHalf, {1}}});
        }) == "tensors of type ComplexHalf cannot be stored in a safetensors file");
}

TEST_CASE("Safetensors: impossible lengths are rejected with an error message",
          "[exec][checkpoint]") {
  CHECK(refusal_of("1234567") == "f: the file has 7 bytes, which is too short for a header length");
  CHECK(refusal_of(std::string(8, '\xff')) ==
        "f: the header should have 18446744073709551615 bytes, but 0 follow");
  CHECK(refusal_of(file_of("{}", 0).substr(0, 9)) ==
        "f: the header should have 2 bytes, but 1 follow");
  CHECK(refusal_of(file_of("{}", 1)) == "f: the data have 1 bytes, but the tensors use 0");
  CHECK(refusal_of(file_of(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 4)) ==
        "f: tensor 'a' ends at byte 5 of the data, which has 4 bytes");
}

TEST_CASE("Safetensors: a gap and an overlap are rejected", "[exec][checkpoint]") {
  const auto two = [](const std::string& begin, const std::string& end) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"U8","shape":[4],"data_offsets":[)" +
                       begin + "," + end + "]}}",
                   9);
  };
  CHECK(refusal_of(two("3", "7")) == "f: tensor 'b' begins at byte 3 of the data instead of 4");
  CHECK(refusal_of(two("5", "9")) == "f: tensor 'b' begins at byte 5 of the data instead of 4");
}

TEST_CASE("Safetensors: invalid entries of a header are rejected with the tensor's name",
          "[exec][checkpoint]") {
  const auto refused = [](const std::string& entry) {
    return refusal_of(file_of(R"({"a":)" + entry + "}", 4));
  };
  CHECK(refused(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})") ==
        R"(f: tensor 'a' has the unknown type "F33")");
  CHECK(refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})") ==
        "f: tensor 'a' of float32 [2] needs 8 bytes, but its data_offsets have 4");
  CHECK(refused(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})") ==
        "f: tensor 'a' of float32 [4611686018427387904, 4] needs 9223372036854775807 bytes, but "
        "its data_offsets have 0");
  CHECK(refused(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})") ==
        "f: tensor 'a': [-1] is not a list of sizes");
  CHECK(refused(R"({"dtype":"F32","shape":null,"data_offsets":[0,4]})") ==
        "f: tensor 'a': null is not a list of sizes");
  CHECK(refused(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})") ==
        "f: tensor 'a' has the invalid data_offsets [4,0]");
  CHECK(refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})") ==
        "f: tensor 'a' has the invalid data_offsets [0]");
  CHECK(refused(R"({"dtype":"F32","shape":[1]})") ==
        "f: tensor 'a' must have dtype, shape and data_offsets, and nothing else");
  CHECK(refused("1") == "f: tensor 'a' must have dtype, shape and data_offsets, and nothing else");
  CHECK_THAT(refused(R"(1,"a":1)"), Catch::Contains("this key occurs twice"));
  CHECK(refusal_of(file_of("[]", 0)) == "f: the header is not a JSON object");
  CHECK_THAT(refusal_of(file_of("{", 0)), Catch::Contains("f, header:1:2: /: not JSON"));
  CHECK(refused(R"({"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]})") ==
        "f: tensor 'a' is too large: [0, 4611686018427387904, 4]");
}

TEST_CASE("Safetensors: with any bit changed, a file is read or rejected and nothing else",
          "[exec][checkpoint]") {
  const std::string good =
      safetensors_header({{"a", at::kFloat, {2, 3}}, {"b", at::kBFloat16, {}}}) +
      std::string(26, '\1');
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    CHECK_NOTHROW(refusal_of(bad));  // exceptions other than InputError pass through
  }
}

}  // namespace safetensors_test
