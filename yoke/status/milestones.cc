#include "yoke/status/milestones.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/state.h"

namespace yoke::status {

struct MilestoneRow {
  std::string cluster;  // a hash of the file's path, its content and the lab's start
  std::string command;
  int exit_status = 0;
  std::int64_t when = 0;
};

template <class Visitor>
void visit_fields(Visitor& visit, MilestoneRow& row) {
  visit.required("cluster", row.cluster);
  visit.required("command", row.command);
  visit.required("exit_status", row.exit_status);
  visit.required("when", row.when);
}

namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxRows = 200;  // over all clusters; the oldest go

constexpr std::array<std::string_view, 8> kCounted = {"cluster reach", "link discover", "link setup", "link undo",
                                                      "link test",     "check",         "run",        "chat"};

fs::path milestones_file() { return user_data_dir() / "milestones.json"; }

// When the lab was started: its layout is written once.
std::string lab_start(const std::optional<std::string>& lab) {
  if (!lab) return "";
  std::error_code failure;
  const auto time = fs::last_write_time(lab::lab_folder(*lab) / "lab.json", failure);
  return failure ? "down" : fmt::format("{}", time.time_since_epoch().count());
}

// A lab that is named is the cluster of the file that was written for it: what was done by either counts for both.
std::optional<fs::path> file_of_lab(const std::string& lab) {
  const fs::path file = lab::load_cluster_file(lab);
  const auto cluster = try_to([&] { return spec::load_cluster(file); });
  return cluster && cluster->lab == lab ? std::optional(file) : std::nullopt;
}

std::optional<std::string> cluster_key(const terminal::Session& session) {
  const auto file = session.lab ? file_of_lab(*session.lab) : session.find_cluster_file();
  if (!file && session.lab) return sha256_hex(fmt::format("lab {} {}", *session.lab, lab_start(session.lab)));
  if (!file) return std::nullopt;
  const std::string content = read_file(*file);
  const auto cluster = try_to([&] { return spec::load_cluster(*file); });
  const std::string start = lab_start(cluster ? cluster->lab : std::nullopt);
  return sha256_hex(fmt::format("{}\n{}\n{}", fs::absolute(*file).native(), start, content));
}

std::vector<MilestoneRow> read_rows() {
  const fs::path file = milestones_file();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  return from_json<std::vector<MilestoneRow>>(parse_json(read_file(file), file.native()));
}

void write_row(const terminal::Session& session, const std::string& command, int exit_status) {
  const auto key = cluster_key(session);
  if (!key) return;
  const auto read = try_to(read_rows);
  std::vector<MilestoneRow> rows = read ? *read : std::vector<MilestoneRow>{};
  std::erase_if(rows, [&](const MilestoneRow& row) { return row.cluster == *key && row.command == command; });
  // What was set up is no longer so once it was undone, and the other way round.
  if (command == "link undo" || command == "link setup") {
    const std::string other = command == "link undo" ? "link setup" : "link undo";
    std::erase_if(rows, [&](const MilestoneRow& row) {
      return row.cluster == *key && (row.command == other || row.command == "check" || row.command == "link test");
    });
  }
  rows.push_back({*key, command, exit_status, std::time(nullptr)});
  if (rows.size() > kMaxRows) rows.erase(rows.begin(), rows.end() - kMaxRows);
  write_file_atomically(milestones_file(), print_json(to_document(rows)) + "\n", {.mode = 0600});
}

// Nothing that a command does depends on this.
void record(const terminal::Session& session, const std::string& command, int exit_status) {
  const auto written = try_to([&] { write_row(session, command, exit_status); });
  if (!written) log(LogLevel::kDebug, "'{}' is not recorded: {}", command, written.error().message());
}

}  // namespace

Milestones recall_milestones(const terminal::Session& session) {
  Milestones milestones;
  const auto read = try_to([&] {
    const auto key = cluster_key(session);
    for (const MilestoneRow& row : key ? read_rows() : std::vector<MilestoneRow>{}) {
      if (row.cluster == *key) milestones[row.command] = {row.exit_status, row.when};
    }
  });
  return milestones;
}

MilestoneHolder::MilestoneHolder(const terminal::Session& session, std::vector<std::string> path) : session_(session) {
  path.erase(path.begin());
  std::string command;
  for (const std::string& word : path) command += (command.empty() ? "" : " ") + word;
  const bool counts = std::find(kCounted.begin(), kCounted.end(), command) != kCounted.end();
  if (!counts || lab::in_node()) return;
  command_ = std::move(command);
  // Of the others an end without a word is as if they had not begun.
  if (*command_ == "link setup") record(session_, *command_, kMilestoneBegun);
}

void MilestoneHolder::end(int exit_status) {
  if (command_) record(session_, *command_, exit_status);
}

}  // namespace yoke::status
