// yoke completion bash, yoke man, yoke help: texts made from the table of commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/help_text.h"

namespace yoke {
namespace {

std::vector<std::string> option_words(const OptionTable& options) {
  std::vector<std::string> words;
  for (const OptionRow& row : options.rows()) {
    if (row.kind == OptionRow::Kind::kFlag || row.kind == OptionRow::Kind::kValue)
      words.push_back(split(row.name, ',').back());
  }
  return words;
}

// The cases of the script's three `case` statements.
struct Cases {
  std::string commands;  // the words that lead from one command to the next
  std::string values;    // what may follow an option that takes a value
  std::string words;     // what may follow a command
};

void add_cases(const std::string& path, const CommandRow& command, Cases& cases) {
  OptionTable options;
  if (command.prepare) command.prepare(options);
  std::vector<std::string> all = option_words(options);
  for (const CommandRow& sub : command.subcommands) all.push_back(sub.name);
  for (const OptionRow& row : options.rows()) {
    const bool is_word = row.kind == OptionRow::Kind::kPositional || row.kind == OptionRow::Kind::kPositionals;
    if (is_word) all.insert(all.end(), row.choices.begin(), row.choices.end());
    if (row.kind != OptionRow::Kind::kValue) continue;
    // An option without choices takes a file or free text: bash's own completion then.
    const std::string reply = row.choices.empty() ? ""
                                                  : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\")); ",
                                                                fmt::join(row.choices, " "));
    cases.values += fmt::format("    '{} {}') {}return ;;\n", path, split(row.name, ',').back(), reply);
  }
  cases.words += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(all, " "));
  for (const CommandRow& sub : command.subcommands) {
    cases.commands += fmt::format("      '{} {}') path=\"$path $word\" ;;\n", path, sub.name);
    add_cases(path + " " + sub.name, sub, cases);
  }
}

}  // namespace

std::string bash_completion(const std::vector<CommandRow>& commands) {
  Cases cases;
  add_cases("yoke", {.name = "yoke", .subcommands = commands}, cases);
  Session unused;
  return fmt::format(R"(# bash completion of yoke; made by `yoke completion bash`
_yoke() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path=yoke word words=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && {{ COMPREPLY=($(compgen -c -- "$current")); return; }}
    case "$path $word" in
{}    esac
  done
  case "$path $previous" in
{}    *' --cluster' | *' --lab') return ;;
  esac
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words {} --help" -- "$current"))
}}
complete -o default -F _yoke yoke
)",
                     cases.commands, cases.values, cases.words, fmt::join(option_words(shared_options(unused)), " "));
}

CommandRow completion_command() {
  return {.name = "completion",
          .summary = "print the shell's completion script",
          .description = "Prints a script that completes commands and options in bash.",
          .examples = {{"source <(yoke completion bash)", "in this shell"},
                       {"yoke completion bash > ~/.local/share/bash-completion/completions/yoke", "in every shell"}},
          .prepare = [](OptionTable& options) -> Action {
            auto shell = std::make_shared<std::string>();
            options.positional("SHELL", "bash", *shell, Presence::kRequired, {"bash"});
            return [shell](Session& session) {
              session.print(bash_completion(public_commands()));
              return kExitOk;
            };
          }};
}

CommandRow man_command() {
  return {.name = "man",
          .summary = "print the manual page",
          .description = "Prints the manual page in the man macros of groff.",
          .examples = {{"yoke man | man -l -", "to read it"}},
          .prepare = [](OptionTable&) -> Action {
            return [](Session& session) {
              session.print(man_page(public_commands()));
              return kExitOk;
            };
          }};
}

namespace {

bool goes_by(const CommandRow& command, const std::string& name) {
  const std::vector<std::string>& aliases = command.aliases;
  return command.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

std::vector<std::string> names_of(const std::vector<CommandRow>& commands) {
  std::vector<std::string> names;
  for (const CommandRow& command : commands) names.push_back(command.name);
  return names;
}

// What `yoke WORDS --help` prints.
std::string help_for(const std::vector<std::string>& words) {
  const std::vector<CommandRow> table = public_commands();
  const std::vector<CommandRow>* choices = &table;
  std::vector<std::string> path = {"yoke"};
  const CommandRow* found = nullptr;
  for (const std::string& word : words) {
    const auto next = std::find_if(choices->begin(), choices->end(),
                                   [&](const CommandRow& command) { return goes_by(command, word); });
    if (next == choices->end()) {
      std::vector<std::string> names = names_of(*choices);
      if (!found) names.emplace_back("exit");
      throw Error(ErrorCode::kUsage, fmt::format("'{}' has no command '{}'", fmt::join(path, " "), printable(word, 60)),
                  names.empty() ? fmt::format("'{} --help' tells all about it", fmt::join(path, " "))
                                : suggest(word, names, "commands"));
    }
    found = &*next;
    choices = &found->subcommands;
    path.push_back(found->name);
  }
  return found ? help_text(path, *found) : overview_text(table);
}

}  // namespace

CommandRow help_command() {
  return {.name = "help",
          .summary = "list the commands, explain one, or list the exit statuses",
          .description =
              "Lists all commands; with the name of one, prints what that command's --help does. `yoke help exit` "
              "lists the exit statuses and what they mean.",
          .examples = {{"yoke help", "all commands"},
                       {"yoke help bench all-reduce", "one of them"},
                       {"yoke help exit", "all exit statuses"}},
          .prepare = [](OptionTable& options) -> Action {
            auto topic = std::make_shared<std::vector<std::string>>();
            std::vector<std::string> choices = names_of(public_commands());
            choices.emplace_back("exit");
            options.positionals("TOPIC", "a command, and one of its own; or exit: the exit statuses", *topic,
                                Presence::kOptional, std::move(choices));
            return [topic](Session& session) {
              const bool statuses = *topic == std::vector<std::string>{"exit"};
              session.print(statuses ? "Exit statuses:\n" + exit_status_text() : help_for(*topic));
              return kExitOk;
            };
          }};
}

}  // namespace yoke
