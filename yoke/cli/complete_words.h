// What may follow in a command line that is being typed: commands, options, choices, and what is there now (labs,
// nodes, jobs, models). The scripts of `yoke completion` ask for it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/cli/command.h"

namespace yoke::cli {

struct Completion {
  std::string word;
  std::string says = {};  // one line about it
};
struct Completions {
  std::vector<Completion> words;
  bool files = false;     // the shell's own files may follow too
  bool programs = false;  // a program may follow, after "--"
};

// `words`: those behind "yoke"; the last is the one being typed, perhaps empty.
Completions complete_words(const std::vector<CommandRow>& commands, const std::vector<std::string>& words);

// The hidden word: prints a line for each, "word<TAB>what it is", and ":files" or ":programs".
std::optional<int> run_complete_part(const std::vector<std::string>& arguments);

}  // namespace yoke::cli
