#include "exported/argument_value.hpp"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace pipewright::plan {
namespace {

using TensorNamed = std::function<int(const Json& named)>;

[[noreturn]] void refuse_kind(const std::string& what) { throw UnknownArgument(what); }

/// Reads a float. JSON cannot express infinities, so the file has them as text.
std::optional<double> float_in(const Json& said) {
  if (said.is_number())
    return said.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (said == "Infinity")
    return infinity;
  if (said == "-Infinity")
    return -infinity;
  if (said == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  return {};
}

/// Reads an integer. Rejects symbolic sizes, which are formulas of the input sizes.
std::int64_t whole(const Json& said) {
  const Json& number = said.is_object() && said.contains("as_int") ? said.at("as_int") : said;
  if (number.is_number_integer())
    return number.get<std::int64_t>();
  refuse_kind("it depends on the sizes or values of the inputs");
}

template <class Number, class Read>
std::vector<Number> each_of(const Json& list, const Read& read) {
  if (!list.is_array())
    refuse_kind("a list is needed");
  std::vector<Number> numbers;
  for (const Json& each : list)
    numbers.push_back(read(each));
  return numbers;
}

bool flag(const Json& said) {
  if (!said.is_boolean())
    refuse_kind("true or false is needed");
  return said.get<bool>();
}

double real(const Json& said) {
  if (const auto number = float_in(said))
    return *number;
  refuse_kind("a number is needed");
}

std::string dtype_named(const Json& said) {
  std::string word = said.is_number_integer() ? exported_dtype(said.get<std::int64_t>()) : "";
  if (word.empty())
    refuse_kind("tensors of type " + said.dump() + " are not supported");
  return word;
}

MemoryOrder memory_order(const Json& said) {
  const std::int64_t number = whole(said);
  if (number < 1 || number > 4)
    refuse_kind("no memory format is numbered " + said.dump());
  return static_cast<MemoryOrder>(number - 1);
}

LayoutArgument strided(const Json& said) {
  constexpr int number_of_strided = 7;
  if (said != number_of_strided)
    refuse_kind("tensors that are not strided are not supported");
  return {};
}

int maybe_tensor(const Json& said, const TensorNamed& tensor_named) {
  if (said.is_object() && said.contains("as_none"))
    return -1;
  return tensor_named(said.is_object() && said.contains("as_tensor") ? said.at("as_tensor") : said);
}

}  // namespace

std::string exported_dtype(std::int64_t number) {
  constexpr std::array<std::pair<int, const char*>, 10> words{{{1, "uint8"},
                                                               {2, "int8"},
                                                               {3, "int16"},
                                                               {4, "int32"},
                                                               {5, "int64"},
                                                               {6, "float16"},
                                                               {7, "float32"},
                                                               {8, "float64"},
                                                               {12, "bool"},
                                                               {13, "bfloat16"}}};
  for (const auto& [known, word] : words)
    if (known == number)
      return word;
  return "";
}

ArgumentValue argument_value(const Json& said, const TensorNamed& tensor_named) {
  if (!said.is_object() || said.size() != 1)
    refuse_kind("it has to be of one kind");
  const std::string& kind = said.begin().key();
  const Json& is = said.begin().value();
  const auto each_tensor = [&](const Json& each) { return maybe_tensor(each, tensor_named); };
  if (kind == "as_none")
    return std::monostate{};
  if (kind == "as_tensor")
    return TensorArgument{tensor_named(is)};
  if (kind == "as_optional_tensor") {
    const int value = maybe_tensor(is, tensor_named);
    return value < 0 ? ArgumentValue() : ArgumentValue(TensorArgument{value});
  }
  if (kind == "as_tensors" || kind == "as_optional_tensors")
    return TensorsArgument{each_of<int>(is, each_tensor)};
  if (kind == "as_int" || kind == "as_sym_int")
    return whole(is);
  if (kind == "as_ints" || kind == "as_sym_ints")
    return each_of<std::int64_t>(is, whole);
  if (kind == "as_float" || kind == "as_sym_float")
    return real(is.is_object() && is.contains("as_float") ? is.at("as_float") : is);
  if (kind == "as_floats")
    return each_of<double>(is, real);
  if (kind == "as_bool" || kind == "as_sym_bool")
    return flag(is.is_object() && is.contains("as_bool") ? is.at("as_bool") : is);
  if (kind == "as_bools")
    return each_of<bool>(is, flag);
  if (kind == "as_string" && is.is_string())
    return is.get<std::string>();
  if (kind == "as_scalar_type")
    return DtypeArgument{dtype_named(is)};
  if (kind == "as_memory_format")
    return memory_order(is);
  if (kind == "as_layout")
    return strided(is);
  if (kind == "as_device")
    return DeviceArgument{};
  refuse_kind("what is given as " + kind.substr(kind.starts_with("as_") ? 3 : 0) +
              " is not known here");
}

}  // namespace pipewright::plan
