// yoke completion, yoke man, yoke help: texts made from the table of commands, and scripts that ask for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/help_text.h"

namespace yoke::cli {
namespace {

// All three ask the program itself (complete_words.h): what it offers depends on the labs, nodes, jobs and models that
// are there now. Its own standard input must be no terminal.
constexpr std::string_view kBash = R"(# bash completion of yoke; made by `yoke completion bash`
_yoke() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default 2>/dev/null ;;
      :programs) COMPREPLY+=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete-words "${COMP_WORDS[@]:1:COMP_CWORD}" </dev/null 2>/dev/null)
}
complete -F _yoke yoke
)";

constexpr std::string_view kZsh = R"(#compdef yoke
# zsh completion of yoke; made by `yoke completion zsh`
_yoke() {
  local line word
  local -a described
  for line in "${(@f)$(${words[1]} complete-words "${(@)words[2,CURRENT]}" </dev/null 2>/dev/null)}"; do
    case $line in
      (:files) _files ;;
      (:programs) _command_names -e ;;
      (?*)
        word=${line%%$'\t'*}
        described+=("${word//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#described )) && _describe yoke described
}
(( $+functions[compdef] )) && compdef _yoke yoke
)";

constexpr std::string_view kFish = R"(# fish completion of yoke; made by `yoke completion fish`
function __yoke_words
  set -l words (commandline -opc) (commandline -ct)
  $words[1] complete-words $words[2..-1] </dev/null 2>/dev/null
end
function __yoke_wants_files
  __yoke_words | string match -q ':files'
end
complete -c yoke -f -a '(__yoke_words | string match -v ":*")'
complete -c yoke -n __yoke_wants_files -F
)";

}  // namespace

std::string completion_script(std::string_view shell) {
  return std::string(shell == "zsh" ? kZsh : shell == "fish" ? kFish : kBash);
}

CommandRow completion_command() {
  return {.name = "completion",
          .summary = "print the shell's completion script",
          .description = "Prints a script that completes commands, options, labs, nodes, jobs and models.",
          .examples = {{"source <(yoke completion bash)", "in this shell"},
                       {"yoke completion bash > ~/.local/share/bash-completion/completions/yoke", "in every bash"},
                       {"yoke completion zsh > ~/.zfunc/_yoke", "in every zsh that has ~/.zfunc in its fpath"},
                       {"yoke completion fish > ~/.config/fish/completions/yoke.fish", "in every fish"}},
          .prepare = [](OptionTable& options) -> Action {
            auto shell = std::make_shared<std::string>();
            options.positional("SHELL", "bash, zsh or fish", *shell, Presence::kRequired, {"bash", "zsh", "fish"});
            return [shell](Session& session) {
              session.print_as_is(completion_script(*shell));
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
              session.print_as_is(man_page(public_commands()));
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
                  names.empty() ? fmt::format("'{} --help' describes it", fmt::join(path, " "))
                                : suggest(word, names, "commands"));
    }
    found = &*next;
    choices = &found->subcommands;
    path.push_back(found->name);
  }
  return found ? help_text(path, *found) : overview_text(table);
}

Document command_json(const CommandRow& command) {
  Document document =
      Document::map({{"name", Document::string(command.name)}, {"summary", Document::string(command.summary)}});
  if (command.subcommands.empty()) return document;
  Document list = Document::list();
  for (const CommandRow& sub : command.subcommands) list.items.push_back(command_json(sub));
  document.add("commands", std::move(list));
  return document;
}

// All commands, or those of one; a word that is none is refused as in the text.
Document help_json(const std::vector<CommandRow>& table, const std::vector<std::string>& topic) {
  help_for(topic);
  const std::vector<CommandRow>* choices = &table;
  const CommandRow* found = nullptr;
  for (const std::string& word : topic) {
    found = &*std::find_if(choices->begin(), choices->end(),
                           [&](const CommandRow& command) { return goes_by(command, word); });
    choices = &found->subcommands;
  }
  if (found) return command_json(*found);
  Document list = Document::list();
  for (const CommandRow& command : table) list.items.push_back(command_json(command));
  return Document::map({{"commands", std::move(list)}});
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
              if (session.json) {
                session.print_json(statuses ? exit_status_json() : help_json(public_commands(), *topic));
                return kExitOk;
              }
              session.print(statuses ? "Exit statuses:\n" + exit_status_text() : help_for(*topic));
              return kExitOk;
            };
          }};
}

}  // namespace yoke::cli
