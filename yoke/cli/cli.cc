#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/progress.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/help_text.h"
#include "yoke/cli/lab_head.h"
#include "yoke/job/job_record.h"
#include "yoke/report/given_commands.h"
#include "yoke/status/milestones.h"
#include "yoke/terminal/terminal_text.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace {

// One command with its parser, and what was found for it.
struct Bound {
  const CommandRow* command = nullptr;
  std::vector<std::string> path;
  CLI::App* app = nullptr;
  OptionTable options;
  Action action;
  bool help = false;
};

void declare(CLI::App& app, const OptionTable& options) {
  for (const OptionRow& row : options.rows()) {
    switch (row.kind) {
      case OptionRow::Kind::kFlag:
        app.add_flag_callback(row.name, [&row] { row.set(""); });
        break;
      case OptionRow::Kind::kValue: {
        CLI::Option* option = app.add_option_function<std::string>(row.name, row.set);
        option->take_last()->trigger_on_parse();
        break;
      }
      case OptionRow::Kind::kPositional:
        app.add_option_function<std::string>(row.name, row.set);
        break;
      case OptionRow::Kind::kPositionals:
        app.add_option_function<std::vector<std::string>>(row.name, [&row](const std::vector<std::string>& words) {
          for (const std::string& word : words) row.set(word);
        });
        break;
      case OptionRow::Kind::kRest:
        break;  // what follows "--" is not parsed: see Parser::parse
    }
  }
}

class Parser {
 public:
  Parser(const std::vector<CommandRow>& commands, Session& session) : shared_(shared_options(session)) {
    root_.set_help_flag();
    root_.allow_extras();
    root_.add_flag("-h,--help", root_help_);
    root_.add_flag("-V,--version", version_);
    declare(root_, shared_);
    for (const CommandRow& command : commands) bind(command, root_, {"yoke"});
  }

  // Finds the innermost command given. Null: none was.
  const Bound* parse(std::vector<std::string> arguments) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    const std::vector<std::string> rest(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    root_.parse(arguments);
    const Bound* found = nullptr;
    for (const auto& bound : bound_) {
      if (bound->app->parsed()) found = bound.get();  // parents come before their children
    }
    for (const std::string& word : rest) set_rest(found, word);
    return found;
  }

  // Of an option that came without its value: what the value is.
  std::string value_hint(const std::string& option) const {
    const OptionRow* found = find_option(shared_, option);
    for (const auto& bound : bound_) {
      if (!bound->app->parsed()) continue;
      if (const OptionRow* row = find_option(bound->options, option)) found = row;
    }
    return found ? fmt::format("{} {}: {}", option, found->value_name, help_of(*found))
                 : "see '--help' after the command";
  }

  bool root_help() const { return root_help_; }
  bool version() const { return version_; }

  void refuse_extras(const Bound* bound, const std::vector<CommandRow>& commands) const {
    const std::vector<std::string> all = root_.remaining(true);
    if (all.empty()) return;
    const std::string wrong = printable(all.front(), 60);
    const std::string path = bound ? fmt::format("{}", fmt::join(bound->path, " ")) : "yoke";
    if (wrong.starts_with('-')) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' has no option '{}'", path, wrong),
                  suggest(all.front(), option_names(bound), "options"));
    }
    const std::vector<CommandRow>& choices = bound ? bound->command->subcommands : commands;
    if (bound && find_rest(*bound)) {
      throw Error(ErrorCode::kUsage, fmt::format("put -- before the program '{}'", wrong),
                  fmt::format("{} -- {}", path, printable(fmt::format("{}", fmt::join(all, " ")), 120)));
    }
    if (choices.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' does not take '{}'", path, wrong),
                  fmt::format("see '{} --help'", path));
    }
    std::vector<std::string> names;
    for (const CommandRow& choice : choices) names.push_back(choice.name);
    const bool takes_node = bound && bound->action && takes_option(*bound, "--node");
    throw Error(ErrorCode::kUsage, fmt::format("'{}' has no command '{}'", path, wrong),
                takes_node && !nearest(all.front(), names) ? fmt::format("for one node: {} --node {}", path, wrong)
                                                           : suggest(all.front(), names, "commands"));
  }

  // What falls through to an outer command, the inner one never sees: "yoke plan hardware spark b300".
  void refuse_outer(const Bound& found) const {
    for (const auto& bound : bound_) {
      if (bound.get() == &found || !bound->app->parsed()) continue;
      for (const OptionRow& row : bound->options.rows()) {
        if (row.kind == OptionRow::Kind::kRest) continue;
        const std::string name = split(row.name, ',').back();
        if (bound->app->count(name) == 0) continue;
        const bool is_word = row.kind == OptionRow::Kind::kPositional || row.kind == OptionRow::Kind::kPositionals;
        const std::string given = is_word ? bound->app->get_option(name)->results().front() : name;
        throw Error(ErrorCode::kUsage,
                    fmt::format("'{}' does not take '{}'", fmt::join(found.path, " "), printable(given, 60)),
                    fmt::format("see '{} --help'", fmt::join(found.path, " ")));
      }
    }
  }

  static void refuse_missing(const Bound& bound) {
    for (const OptionRow& row : bound.options.rows()) {
      if (row.presence != Presence::kRequired || bound.app->count(row.name) > 0) continue;
      throw Error(ErrorCode::kUsage, fmt::format("'{}' needs {}", fmt::join(bound.path, " "), row.name),
                  fmt::format("{}: {}", row.name, row.help));
    }
  }

 private:
  // What takes the words after "--"; null where nothing does.
  static const OptionRow* find_rest(const Bound& bound) {
    for (const OptionRow& row : bound.options.rows()) {
      if (row.kind == OptionRow::Kind::kRest) return &row;
    }
    return nullptr;
  }

  static const OptionRow* find_option(const OptionTable& options, const std::string& name) {
    for (const OptionRow& row : options.rows()) {
      const std::vector<std::string> names = split(row.name, ',');
      if (std::find(names.begin(), names.end(), name) != names.end()) return &row;
    }
    return nullptr;
  }

  static bool takes_option(const Bound& bound, std::string_view name) {
    const auto& rows = bound.options.rows();
    return std::any_of(rows.begin(), rows.end(), [&](const OptionRow& row) { return row.name == name; });
  }

  static void set_rest(const Bound* bound, const std::string& word) {
    if (const OptionRow* row = bound ? find_rest(*bound) : nullptr) return row->set(word);
    throw Error(ErrorCode::kUsage,
                fmt::format("this command takes no program after --, such as '{}'", printable(word, 60)),
                "see '--help' after the command");
  }

  void bind(const CommandRow& command, CLI::App& parent, std::vector<std::string> path) {
    path.push_back(command.name);
    auto bound = std::make_unique<Bound>();
    bound->command = &command;
    bound->path = path;
    bound->app = parent.add_subcommand(command.name);
    for (const std::string& alias : command.aliases) bound->app->alias(alias);
    bound->app->set_help_flag();
    bound->app->allow_extras();
    bound->app->fallthrough();
    // One command in a line: else CLI11 takes an argument that has a command's name (a folder called "model") for it.
    parent.require_subcommand(0, 1);
    bound->app->add_flag("-h,--help", bound->help);
    if (command.prepare) bound->action = command.prepare(bound->options);
    declare(*bound->app, bound->options);
    CLI::App& app = *bound->app;
    bound_.push_back(std::move(bound));
    for (const CommandRow& sub : command.subcommands) bind(sub, app, path);
  }

  std::vector<std::string> option_names(const Bound* bound) const {
    std::vector<std::string> names = {"--help"};
    if (!bound) names.emplace_back("--version");
    const auto add = [&](const OptionTable& options) {
      for (const OptionRow& row : options.rows()) {
        if (row.kind == OptionRow::Kind::kFlag || row.kind == OptionRow::Kind::kValue)
          names.push_back(split(row.name, ',').back());
      }
    };
    if (bound) add(bound->options);
    add(shared_);
    return names;
  }

  OptionTable shared_;
  CLI::App root_{"", "yoke"};
  std::vector<std::unique_ptr<Bound>> bound_;  // CLI11 keeps references into them
  bool root_help_ = false;
  bool version_ = false;
};

// A parser's flag is there or not: how often is counted here. "-vv" is twice.
template <class Words>
std::size_t count_verbose(Words begin, Words end) {
  std::size_t count = 0;
  for (; begin != end; ++begin) {
    const bool is_short =
        begin->size() > 1 && (*begin)[0] == '-' && begin->find_first_not_of('v', 1) == std::string::npos;
    count += is_short ? begin->size() - 1 : *begin == "--verbose" ? 1 : 0;
  }
  return count;
}

// Yoke starts a hidden word with its own arguments, and never on a terminal; a person gets one sentence.
int run_hidden(const CommandRow& row, const std::vector<std::string>& arguments) {
  if (!isatty(STDIN_FILENO)) {
    if (const auto status = row.part(arguments)) return *status;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' is a part of yoke that other commands start: it {}", row.name, row.summary),
              "'yoke help' lists the commands");
}

// A model is looked for here, where its path was typed: a lab's node has another working folder and another home.
std::vector<std::string> arguments_for_head(const Session& session, const Bound& bound,
                                            const std::vector<std::string>& arguments) {
  const CLI::Option* model = bound.app->get_option_no_throw("MODEL");
  // The model of `launch` is the engine's: often a name of the Hub.
  if (!model || bound.command->name == "launch" || !is_about_lab(session)) return arguments;
  const CLI::Option* made = bound.app->get_option_no_throw("--shape");
  if (made && !made->empty()) return arguments;  // made in memory: there is no folder
  const std::string word = model->empty() ? "" : model->results().front();
  for (const char* own : {"/tmp/", "/run/", "/dev/shm/"}) {
    if (word.starts_with(own)) return arguments;  // each node has its own: the node knows
  }
  return weights::with_model_folder(arguments, word, weights::find_model_folder(word));
}

int perform(Session& session, const Bound& bound, const std::vector<std::string>& arguments) {
  if (bound.command->place == CommandPlace::kHead) {
    if (const auto status = run_on_lab_head(session, arguments_for_head(session, bound, arguments))) return *status;
  }
  // What loads the machine shows in a watch that runs beside it.
  constexpr std::array kMarked = {"run", "chat", "serve", "batch", "bench", "launch"};
  std::optional<job::CommandMark> mark;
  if (bound.path.size() > 1 && std::ranges::find(kMarked, bound.path[1]) != kMarked.end()) {
    mark.emplace(fmt::format("{}", fmt::join(bound.path, " ")));
  }
  return bound.action(session);
}

int dispatch(const std::vector<std::string>& arguments, Session& session) {
  std::vector<CommandRow> commands = command_table();
  for (const CommandRow& row : commands) {
    if (row.part && !arguments.empty() && arguments[0] == row.name) return run_hidden(row, arguments);
  }
  std::erase_if(commands, [](const CommandRow& row) { return row.visibility == Visibility::kHidden; });
  Parser parser(commands, session);
  const Bound* bound = nullptr;
  try {
    bound = parser.parse(arguments);
  } catch (const CLI::ArgumentMismatch& failure) {
    const std::string option = split(failure.what(), ':').front();
    throw Error(ErrorCode::kUsage, fmt::format("{} needs a value", option), parser.value_hint(option));
  } catch (const CLI::ParseError& failure) {
    throw Error(ErrorCode::kUsage, printable(failure.what()), "see 'yoke help', or '--help' after the command");
  }
  if (session.quiet) set_quiet_progress();
  if (session.verbose) set_log_level(session.protocol ? LogLevel::kTrace : LogLevel::kDebug);
  parser.refuse_extras(bound, commands);
  if (parser.version()) {
    OptionTable none;
    return version_command().prepare(none)(session);
  }
  if (!bound) {
    if (!parser.root_help()) return show_status(session);
    session.print(overview_text(commands));
    return kExitOk;
  }
  if (bound->help || parser.root_help()) {
    session.print(help_text(bound->path, *bound->command));
    return kExitOk;
  }
  if (!bound->action) {
    std::vector<std::string> names;
    for (const CommandRow& sub : bound->command->subcommands) names.push_back(sub.name);
    throw Error(ErrorCode::kUsage, fmt::format("'{}' needs a command", fmt::join(bound->path, " ")),
                fmt::format("the commands are {}", fmt::join(names, ", ")));
  }
  parser.refuse_outer(*bound);
  Parser::refuse_missing(*bound);
  status::MilestoneHolder milestone(session, bound->path);
  try {
    const int status = perform(session, *bound, arguments);
    milestone.end(status);
    return status;
  } catch (const Error& error) {
    milestone.end(exit_status_of(error));
    throw;
  }
}

void report_error(const Error& error, const Session& session) {
  std::string text = fmt::format("yoke: {}\n", terminal_safe(error.message()));
  for (const std::string& where : error.context()) text += fmt::format("  while {}\n", terminal_safe(where));
  const std::string hint = report::commands_as_given(error.hint(), session.given_options());
  if (!hint.empty()) text += fmt::format("  hint: {}\n", terminal_safe(hint));
  if (const auto columns = terminal_columns(STDERR_FILENO)) text = terminal::fold_lines(text, *columns);
  if (takes_colour(STDERR_FILENO)) text.replace(0, 5, "\x1b[1;31myoke:\x1b[0m");
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* nowhere left to say it */
  }
  if (!session.json) return;
  try {
    session.print_json(Document::map({{"error", error_json(error, exit_status_of(error))}}));
  } catch (...) { /* said on standard error already */
  }
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  Session session;
  // Known before options are read: what is wrong with one of them is reported in JSON too.
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  session.json = std::find(arguments.begin(), end, "--json") != end;
  session.protocol = count_verbose(arguments.begin(), end) >= 2;
  try {
    return dispatch(arguments, session);
  } catch (const ClosedPipe&) {
    return kExitClosedPipe;
  } catch (const Error& error) {
    report_error(error, session);
    return exit_status_of(error);
  } catch (const std::bad_alloc&) {
    report_error(Error(ErrorCode::kExhausted, "out of memory"), session);
    return info(ErrorCode::kExhausted).exit_status;
  } catch (const std::exception& unexpected) {
    report_error(Error(ErrorCode::kInternal, fmt::format("unexpected: {}", unexpected.what()), "please report this"),
                 session);
    return info(ErrorCode::kInternal).exit_status;
  }
}

}  // namespace yoke::cli
