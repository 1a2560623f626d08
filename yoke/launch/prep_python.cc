#include "yoke/launch/prep_python.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "yoke/base/text.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

// "torch==2.9.1" by its name; "name @ file:///x" too.
std::map<std::string, std::string> packages_of(std::string_view freeze) {
  std::map<std::string, std::string> packages;
  for (const std::string& line : split(freeze, '\n')) {
    const std::string text(trim(line));
    if (!text.empty() && text.front() != '#') packages[text.substr(0, text.find_first_of("= @"))] = text;
  }
  return packages;
}

}  // namespace

std::vector<std::string> unpinned_lines(std::string_view requirements) {
  std::vector<std::string> found;
  for (const std::string& line : split(requirements, '\n')) {
    std::string text(trim(line.substr(0, line.find(" #"))));
    if (text.ends_with('\\')) text.pop_back();
    if (text.empty() || text.front() == '#' || text.front() == '-') continue;
    const bool pinned = text.find("==") != std::string::npos || text.find(" @ ") != std::string::npos;
    if (!pinned || text.find('*') != std::string::npos) found.push_back(text);
  }
  return found;
}

std::string python_script(const PythonOptions& options) {
  std::string install;
  if (!options.check_only) {
    const std::string source =
        options.wheels.empty() ? "" : fmt::format(" --no-index --find-links {}", bash_word(options.wheels));
    install = fmt::format(
        "if [ ! -x \"$folder/bin/python\" ]; then {} -m venv \"$folder\" >&2; fi\n"
        "list=$(mktemp)\ntrap 'rm -f \"$list\"' EXIT\n"
        "cat > \"$list\" <<'END_OF_LIST'\n{}\nEND_OF_LIST\n"
        "\"$folder/bin/python\" -m pip install --quiet --disable-pip-version-check{} -r \"$list\" >&2\n",
        bash_word(options.python), options.requirements, source);
  }
  return fmt::format(
      "#!/bin/bash\nset -euo pipefail\nfolder={}\n{}"
      "if [ ! -x \"$folder/bin/python\" ]; then\n  echo \"there is no Python environment in $folder\" >&2\n  exit "
      "4\nfi\n"
      "\"$folder/bin/python\" -m pip freeze --disable-pip-version-check | LC_ALL=C sort\n",
      bash_word(options.folder), install);
}

std::vector<std::string> freeze_differences(std::string_view here, std::string_view there) {
  const auto ours = packages_of(here), theirs = packages_of(there);
  std::set<std::string> names;
  for (const auto& [name, text] : ours) names.insert(name);
  for (const auto& [name, text] : theirs) names.insert(name);
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    const auto a = ours.find(name), b = theirs.find(name);
    const std::string one = a == ours.end() ? "no " + name : a->second;
    const std::string other = b == theirs.end() ? "no " + name : b->second;
    if (one != other) differences.push_back(fmt::format("{} here, {} there", one, other));
  }
  return differences;
}

}  // namespace yoke::launch
