// Shell completion, the manual, and the libraries that a command loads.

#include <cstdio>
#include <cstdlib>

#include "cli/support/program.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace shell_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

/// Returns the output of a shell command.
std::string output_of(const std::string& command) {
  std::string text;
  std::fflush(nullptr);  // otherwise the child prints it as well
  FILE* const pipe = popen(command.c_str(), "r");
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
    text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

bool has(const std::string& program) {
  return !output_of("command -v " + program + " 2>/dev/null").empty();
}

/// Returns bash's completions of the last of these words.
std::string offered(const std::string& file, const std::string& words) {
  const std::string script = "source " + file + "; COMP_WORDS=(" + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; "
                             "_pipewright; printf \"%s\\n\" \"${COMPREPLY[@]}\"";
  return output_of("bash -c '" + script + "' 2>&1");
}

TEST_CASE(
    "The completion script of bash completes commands, options, choices and the fields of a "
    "scenario",
    "[cli][shell]") {
  const TempFolder folder;
  const auto script = run_program({"completion", "bash"});
  REQUIRE(script.exit_code == 0);
  folder.write("completion", script.out);
  const std::string file = (folder.path() / "completion").string();
  CHECK(offered(file, "pipewright pro") == "profile\n");
  CHECK(offered(file, "pipewright train --pro") == "--processes\n");
  CHECK(offered(file, "pipewright simulate --engine s") == "simgrid\n");
  CHECK(offered(file, "pipewright run --set training.cpu") == "training.cpu_branch=\n");
  CHECK(offered(file, "pipewright schedule zb-h") == "zb-h1\nzb-h2\n");
}

TEST_CASE("The other shells accept their completion scripts, if they are installed",
          "[cli][shell]") {
  for (const std::string shell : {"zsh", "fish"}) {
    const auto script = run_program({"completion", shell});
    REQUIRE(script.exit_code == 0);
    CHECK(script.out.find("training.cpu_branch") != std::string::npos);
    if (!has(shell)) {
      test::skip_part(shell + " is not installed, its completion was not read by it");
      continue;
    }
    const TempFolder folder;
    folder.write("completion", script.out);
    const std::string file = (folder.path() / "completion").string();
    CHECK(output_of(shell + " -n " + file + " 2>&1").empty());
  }
  CHECK(run_program({"completion", "tcsh"}).exit_code == 2);
}

TEST_CASE("The manual has every command and option, and is valid roff", "[cli][shell]") {
  const auto manual = run_program({"manual"});
  REQUIRE(manual.exit_code == 0);
  CHECK(manual.out.starts_with(".TH "));
  for (const char* part :
       {"run", "profile", "simulate", "completion", "\\-\\-checkpoint\\-every", "\\-\\-explain"})
    CHECK(manual.out.find(part) != std::string::npos);
  if (!has("man"))
    return test::skip_part("man is not installed, the manual was not read by it");
  const TempFolder folder;
  folder.write("pipewright.1", manual.out);
  const auto file = (folder.path() / "pipewright.1").string();
  CHECK(output_of("MANROFFOPT= man --warnings=all -l " + file + " 2>&1 >/dev/null").empty());
}

/// Returns the libraries that the program's file needs, and those that they need.
std::string libraries_of(const std::string& program) { return output_of("ldd " + program); }

TEST_CASE("A command that does not train loads neither LibTorch nor SimGrid", "[cli][shell]") {
  const std::string libraries = libraries_of(PIPEWRIGHT_PROGRAM);
  CHECK(libraries.find("libfmt") != std::string::npos);
  for (const char* heavy : {"libtorch", "libc10", "simgrid", "libcuda", "libnccl"})
    CHECK(libraries.find(heavy) == std::string::npos);
  // These commands run without the other programs.
  const TempFolder folder;
  const auto alone = folder.path() / "pipewright";
  std::filesystem::copy_file(PIPEWRIGHT_PROGRAM, alone);
  for (const char* command :
       {"--version", "--help", "schedule 1f1b --ranks 2 --microbatches 3",
        "partition --parts 2 --weights 3,1,2", "topology --axes pipe,data --dims 2,4", "manual"})
    CHECK(std::system((alone.string() + " " + command + " >/dev/null").c_str()) == 0);
  const std::string shared = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";
  for (const char* command : {"simulate", "sweep --set pipeline.microbatches=4,8"})
    CHECK(std::system((alone.string() + " " + command + " " + shared + "scenario.json --costs " +
                       shared + "costs.json >/dev/null")
                          .c_str()) == 0);
  CHECK(output_of(alone.string() + " profile " + test::gpt_scenario + " 2>&1")
            .find("pipewright-torch") != std::string::npos);
}

}  // namespace shell_test
