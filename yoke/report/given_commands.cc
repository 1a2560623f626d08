#include "yoke/report/given_commands.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace yoke::report {
namespace {

// Commands that concern no cluster.
constexpr std::array<std::string_view, 7> kWithoutCluster = {"explain", "help",    "lab up",    "man",
                                                             "model",   "version", "completion"};

bool takes_cluster(std::string_view command) {
  const bool has_one = command.find(" --cluster") != command.npos || command.find(" --lab") != command.npos;
  return !has_one && std::ranges::none_of(kWithoutCluster, [&](std::string_view word) {
    return command == word || (command.starts_with(word) && command[word.size()] == ' ');
  });
}

// In double quotes where a shell would take it apart: the message has single ones around the command.
std::string quoted(const std::string& value) {
  const bool is_plain = std::ranges::all_of(value, [](char letter) {
    const bool is_mark = std::string_view("._/-+=@~:").find(letter) != std::string_view::npos;
    return is_mark || std::isalnum(static_cast<unsigned char>(letter)) != 0;
  });
  return is_plain ? value : '"' + value + '"';
}

// `command` without "yoke ".
std::string as_given(std::string command, const std::vector<std::string>& given) {
  if (!takes_cluster(command)) return command;
  const std::string value = quoted(given[1]);
  constexpr std::string_view kUsualFile = "-o cluster.yaml";
  const std::size_t usual = command.find(kUsualFile);
  if (usual != command.npos && given[0] == "--cluster") command.replace(usual, kUsualFile.size(), "-o " + value);
  // What follows "--" is not ours.
  command.insert(std::min(command.find(" -- "), command.size()), " " + given[0] + " " + value);
  return command;
}

}  // namespace

std::string commands_as_given(std::string_view text, const std::vector<std::string>& given) {
  constexpr std::string_view kBegin = "'yoke ";
  std::string out;
  while (!given.empty()) {
    const std::size_t begin = text.find(kBegin);
    const std::size_t end = begin == text.npos ? begin : text.find('\'', begin + kBegin.size());
    if (end == text.npos) break;
    const std::size_t command = begin + kBegin.size();
    out.append(text.substr(0, command));
    out.append(as_given(std::string(text.substr(command, end - command)), given));
    text.remove_prefix(end);
  }
  return out.append(text);
}

void give_options(std::vector<spec::Finding>& findings, const std::vector<std::string>& given) {
  for (spec::Finding& finding : findings) finding.fix = commands_as_given(finding.fix, given);
}

}  // namespace yoke::report
