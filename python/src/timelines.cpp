#include <nanobind/ndarray.h>

#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/compare/comparison.hpp"
#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/trace/files/timeline_file.hpp"

namespace pipewright::python {
namespace {

std::vector<double> seconds_of(const std::vector<plan::Seconds>& values) {
  std::vector<double> seconds;
  for (const plan::Seconds value : values)
    seconds.push_back(value.value);
  return seconds;
}

/// Returns columns that keep the timeline alive while an array exists. They are views of the
/// timeline's own numbers.
nb::dict arrays_of(nb::handle self) {
  const auto& timeline = nb::cast<const plan::Timeline&>(self);
  static_assert(sizeof(plan::Seconds) == sizeof(double) && sizeof(plan::Row) == sizeof(int));
  constexpr auto stride = static_cast<std::int64_t>(sizeof(plan::Span));
  const std::size_t shape[1] = {timeline.spans.size()};
  nb::dict arrays;
  const plan::Span* const first = timeline.spans.data();
  const auto view = [&]<class Number>(const char* name, const Number* column) {
    const std::int64_t strides[1] = {stride / static_cast<std::int64_t>(sizeof(Number))};
    arrays[name] = nb::cast(
        nb::ndarray<nb::numpy, const Number, nb::ndim<1>>(column, 1, shape, self, strides));
  };
  static_assert(sizeof(plan::Span) % sizeof(double) == 0);
  view("rank", first == nullptr ? nullptr : &first->rank);
  view("row", first == nullptr ? nullptr : reinterpret_cast<const int*>(&first->row));
  view("start", first == nullptr ? nullptr : &first->start.value);
  view("end", first == nullptr ? nullptr : &first->end.value);
  return arrays;
}

nb::list spans_of(const plan::Timeline& timeline) {
  nb::list spans;
  for (const plan::Span& span : timeline.spans)
    spans.append(nb::make_tuple(span.rank, plan::word_of(span.row), span.action, span.start.value,
                                span.end.value));
  return spans;
}

nb::list idle_of(const plan::Timeline& timeline) {
  nb::list ranks;
  for (const plan::IdleByCause& causes : plan::idle_by_cause(timeline)) {
    nb::dict rank;
    for (std::size_t cause = 0; cause < causes.size(); ++cause)
      rank[plan::idle_causes()[cause].c_str()] = causes[cause].value;
    ranks.append(rank);
  }
  return ranks;
}

std::vector<std::int64_t> peaks_of(const plan::Timeline& timeline) {
  std::vector<std::int64_t> bytes;
  for (const plan::Bytes peak : plan::peak_per_rank(timeline))
    bytes.push_back(peak.value);
  return bytes;
}

std::string svg_of(const plan::Timeline& timeline) {
  return draw::to_svg(draw::timeline_scene({timeline}, timeline.name));
}

}  // namespace

void bind_timelines(nb::module_& module) {
  nb::class_<plan::Timeline>(module, "Timeline",
                             "The actions of each rank in one iteration, with their times. "
                             "Notebooks show it as a drawing.")
      .def_prop_ro("name", [](const plan::Timeline& self) { return self.name; })
      .def_prop_ro("ranks", [](const plan::Timeline& self) { return self.ranks; })
      .def_prop_ro(
          "iteration_s", [](const plan::Timeline& self) { return self.length.value; },
          "Seconds from the first start to the last end.")
      .def_prop_ro(
          "busy_s",
          [](const plan::Timeline& self) { return seconds_of(plan::busy_per_rank(self)); },
          "Seconds of compute of each rank.")
      .def_prop_ro(
          "bubble_s",
          [](const plan::Timeline& self) { return seconds_of(plan::bubble_per_rank(self)); },
          "Seconds of the iteration without compute, of each rank.")
      .def_prop_ro("idle_s", &idle_of, "Idle seconds by cause, of each rank.")
      .def_prop_ro("peak_bytes", &peaks_of, "Peak memory of each rank; 0 if it was not recorded.")
      .def_prop_ro("spans", &spans_of, "All spans: (rank, row, action, start, end), in seconds.")
      .def("to_arrays", &arrays_of,
           "Returns columns of the spans as numpy arrays: rank, row (0 compute, 1 send, 2 receive, "
           "3 reduce), start and end in seconds. They are views without a copy, and keep the "
           "timeline alive.")
      .def("to_svg", &svg_of, WithoutLock())
      .def("_repr_svg_", &svg_of, WithoutLock())
      .def(
          "save",
          [](const plan::Timeline& self, const std::string& file) {
            trace::write_timeline_file(file, plan::table_of(self));
          },
          nb::arg("file"), WithoutLock(),
          "Writes .pwt, .json, .json.gz, .csv or .svg, depending on the file's suffix.")
      .def(
          "compare",
          [](const plan::Timeline& self, const plan::Timeline& measured) {
            return to_python(loop::to_json(loop::compare(self, measured)));
          },
          nb::arg("measured"),
          "Compares this prediction with a measured timeline; returns what `pipewright compare "
          "--json` prints.")
      .def("__repr__", [](const plan::Timeline& self) {
        return "Timeline \"" + self.name + "\" of " + std::to_string(self.ranks) + " ranks, " +
               std::to_string(self.spans.size()) + " spans, " + std::to_string(self.length.value) +
               " s";
      });
  module.def(
      "read_timeline",
      [](const std::string& file) {
        std::vector<std::string> problems;
        return trace::read_timeline(file, problems);
      },
      nb::arg("file"), WithoutLock(),
      "Reads one iteration from a native file, from one of our traces or from a Chrome trace.");
}

}  // namespace pipewright::python
