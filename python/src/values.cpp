#include <nlohmann/json.hpp>

#include "bindings.hpp"

namespace pipewright::python {

nb::object to_python(const plan::Json& json) {
  switch (json.type()) {
    case plan::Json::value_t::boolean:
      return nb::bool_(json.get<bool>());
    case plan::Json::value_t::number_integer:
      return nb::int_(json.get<std::int64_t>());
    case plan::Json::value_t::number_unsigned:
      return nb::int_(json.get<std::uint64_t>());
    case plan::Json::value_t::number_float:
      return nb::float_(json.get<double>());
    case plan::Json::value_t::string:
      return nb::str(json.get_ref<const std::string&>().c_str());
    case plan::Json::value_t::array: {
      nb::list list;
      for (const plan::Json& item : json)
        list.append(to_python(item));
      return list;
    }
    case plan::Json::value_t::object: {
      nb::dict dict;
      for (const auto& [key, item] : json.items())
        dict[key.c_str()] = to_python(item);
      return dict;
    }
    default:
      return nb::none();
  }
}

plan::Json to_json(nb::handle value) {
  if (value.is_none())
    return nullptr;
  if (nb::isinstance<nb::bool_>(value))
    return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value))
    return nb::cast<std::int64_t>(value);
  if (nb::isinstance<nb::float_>(value))
    return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value))
    return nb::cast<std::string>(value);
  if (nb::isinstance<nb::dict>(value)) {
    plan::Json json = plan::Json::object();
    for (const auto& [key, item] : nb::borrow<nb::dict>(value))
      json[nb::cast<std::string>(key)] = to_json(item);
    return json;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    plan::Json json = plan::Json::array();
    for (const nb::handle item : nb::iter(value))
      json.push_back(to_json(item));
    return json;
  }
  throw nb::type_error("expected a number, a string, None, or a list or dictionary of these");
}

void run_long(nb::handle progress, const std::function<void(const plan::ProgressCallback&)>& work) {
  std::atomic<bool> ends{false};
  std::optional<nb::python_error> thrown;
  const plan::ProgressCallback continues = [&](std::size_t done, std::size_t of) {
    if (ends)
      return false;
    const nb::gil_scoped_acquire with_lock;
    try {
      if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
      if (!progress.is_none())
        progress(done, of);
    } catch (nb::python_error& error) {
      if (!ends.exchange(true))
        thrown.emplace(std::move(error));
    }
    return !ends.load();
  };
  {
    const nb::gil_scoped_release without_lock;
    try {
      work(continues);
    } catch (const plan::Stopped&) {  // the reason is raised below
    }
  }
  if (thrown)
    throw nb::python_error(std::move(*thrown));
}

}  // namespace pipewright::python
