#include "yoke/cli/complete_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/help_text.h"
#include "yoke/job/job_record.h"
#include "yoke/lab/state.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> node_names(const Session& session) {
  std::vector<std::string> names;
  const auto cluster = try_to([&]() -> std::optional<spec::Cluster> {
    if (session.lab) return lab::lab_cluster(lab::load_layout(*session.lab));
    return read_session_cluster(session);
  });
  if (!cluster || !*cluster) return names;
  for (const spec::ClusterNode& node : (*cluster)->nodes) names.push_back(node.name);
  return names;
}

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  const auto jobs = try_to([] { return job::running_jobs(); });
  for (const job::JobRecord& job : jobs ? *jobs : std::vector<job::JobRecord>{}) names.push_back(job.name);
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  std::error_code failure;
  for (const char* place : {".", "models"}) {
    for (fs::directory_iterator entry(place, failure), end; !failure && entry != end; entry.increment(failure)) {
      std::error_code ignored;
      if (!fs::exists(entry->path() / "config.json", ignored)) continue;
      names.push_back(entry->path().lexically_normal().native());
    }
  }
  if (weights::shipped_model()) names.emplace_back(weights::kShippedModelName);
  return names;
}

// One command line as far as it is typed.
class Line {
 public:
  Line(const std::vector<CommandRow>& commands, const std::vector<std::string>& words) : commands_(&commands) {
    shared_ = shared_options(session_);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) take(words[i]);
    current_ = words.empty() ? "" : words.back();
  }

  Completions complete() {
    if (after_dashes_) return {.words = {}, .files = true, .programs = true};
    if (waiting_) {
      add_values(*waiting_);
    } else if (current_.starts_with('-')) {
      add_options(options_);
      add_options(shared_);
      add("--help", "how this command is used");
      if (!command_) add("--version", "which yoke this is");
    } else {
      for (const CommandRow& sub : *commands_) add(sub.name, sub.summary);
      if (const OptionRow* row = next_positional()) add_values(*row);
    }
    return found_;
  }

 private:
  void take(const std::string& word) {
    if (after_dashes_) return;
    if (waiting_) {
      if (waiting_->set && (waiting_->name == "--lab" || waiting_->name == "--cluster")) waiting_->set(word);
      waiting_ = nullptr;
      return;
    }
    after_dashes_ = word == "--";
    if (word.starts_with('-')) {
      waiting_ = find_value_option(word);
      return;
    }
    const auto sub = std::find_if(commands_->begin(), commands_->end(), [&](const CommandRow& row) {
      return row.name == word || std::find(row.aliases.begin(), row.aliases.end(), word) != row.aliases.end();
    });
    if (sub == commands_->end()) {
      ++positionals_;
      return;
    }
    command_ = &*sub;
    path_ += " " + sub->name;
    options_ = {};
    if (sub->prepare) sub->prepare(options_);
    commands_ = &sub->subcommands;
  }

  const OptionRow* find_value_option(const std::string& word) const {
    for (const OptionTable* table : {&options_, &shared_}) {
      for (const OptionRow& row : table->rows()) {
        const std::vector<std::string> names = split(row.name, ',');
        if (row.kind == OptionRow::Kind::kValue && std::find(names.begin(), names.end(), word) != names.end())
          return &row;
      }
    }
    return nullptr;
  }

  const OptionRow* next_positional() const {
    std::size_t place = 0;
    for (const OptionRow& row : options_.rows()) {
      if (row.kind == OptionRow::Kind::kPositionals) return &row;
      if (row.kind == OptionRow::Kind::kPositional && place++ == positionals_) return &row;
    }
    return nullptr;
  }

  // What a value is, by its name in the tables.
  void add_values(const OptionRow& row) {
    for (const std::string& choice : row.choices) add(choice, "");
    if (!row.choices.empty()) return;
    const bool names_lab =
        row.name == "--lab" || (row.name == "--name" && path_.starts_with(" lab") && path_ != " lab up");
    if (names_lab) return add_all(try_to(lab::list_labs).value_or(std::vector<std::string>{}), "a lab that is up");
    if (row.name == "--node" || row.name == "NODE") return add_all(node_names(session_), "a node");
    if (path_ == " job stop") return add_all(job_names(), "a job that runs");
    if (row.name == "MODEL" || row.name == "--model") add_all(model_names(), "a model");
    found_.files = true;
  }

  void add_options(const OptionTable& table) {
    for (const OptionRow& row : table.rows()) {
      if (row.kind == OptionRow::Kind::kFlag || row.kind == OptionRow::Kind::kValue)
        add(split(row.name, ',').back(), row.help);
    }
  }

  void add_all(const std::vector<std::string>& words, const std::string& says) {
    for (const std::string& word : words) add(word, says);
  }
  void add(const std::string& word, const std::string& says) {
    if (word.starts_with(current_)) found_.words.push_back({word, says});
  }

  Session session_;
  OptionTable shared_;
  const std::vector<CommandRow>* commands_;
  const CommandRow* command_ = nullptr;
  std::string path_;
  OptionTable options_;
  std::size_t positionals_ = 0;
  const OptionRow* waiting_ = nullptr;  // an option whose value comes
  bool after_dashes_ = false;
  std::string current_;
  Completions found_;
};

}  // namespace

Completions complete_words(const std::vector<CommandRow>& commands, const std::vector<std::string>& words) {
  return Line(commands, words).complete();
}

std::optional<int> run_complete_part(const std::vector<std::string>& arguments) {
  const Completions found = complete_words(public_commands(), {arguments.begin() + 1, arguments.end()});
  std::string out;
  for (const Completion& one : found.words) out += fmt::format("{}\t{}\n", printable(one.word), printable(one.says));
  if (found.files) out += ":files\n";
  if (found.programs) out += ":programs\n";
  Session().print(out);
  return kExitOk;
}

}  // namespace yoke::cli
