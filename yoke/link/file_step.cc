// Steps that change files: a whole file of ours, lines in a file of the user's, a key pair.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/link/netplan.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {
namespace fs = std::filesystem;
namespace {

using namespace literals;

// A link is followed, as what the user wants changed is what it points to. What is read and written through it is so
// with the user's rights (file_state.h).
fs::path path_of(const Step& step) {
  const bool at_home = step.path.starts_with("~/");
  const fs::path path = at_home ? login_user().home / step.path.substr(2) : fs::path(step.path);
  return fs::is_symlink(path) ? fs::weakly_canonical(path) : path;
}

FileOwner owner_of(const Step& step) { return step.path.starts_with("~/") ? login_user().owner : FileOwner{}; }

class FileAction : public StepAction {
 public:
  explicit FileAction(const Step& step) : step_(step), path_(path_of(step)) {}

  bool satisfied() const override {
    const FileState now = inspect_file(path_, nullptr, owner_of(step_));
    return now.exists && now.sha256 == sha256_hex(step_.content) && now.mode == step_.mode;
  }

  std::vector<std::string> commands() const override {
    std::vector<std::string> lines;
    if (step_.kind == StepKind::kNetplan) lines.push_back("netplan generate --root-dir (a copy): must accept it");
    lines.push_back(fmt::format("write {} (mode {:04o}):", path_.native(), step_.mode));
    for (const std::string& line : split(trim(step_.content), '\n')) lines.push_back("  | " + line);
    return lines;
  }

  void apply() const override {
    if (step_.kind == StepKind::kNetplan) validate_netplan(step_.content, path_);
    make_folders(inspect_file(path_, nullptr, owner_of(step_)), 0755, owner_of(step_));
    write_owned_file(path_, step_.content, step_.mode, owner_of(step_), owner_of(step_));
  }

  Document capture(const SavedBytes& saved) const override {
    return to_json(inspect_file(path_, &saved, owner_of(step_)));
  }

  void restore(const Document& before, const Document& after, const SavedBytes& saved) const override {
    const FileState was = from_json<FileState>(before);
    const FileState now = inspect_file(path_, nullptr, owner_of(step_));
    const bool ours = now.sha256 == sha256_hex(step_.content) ||
                      (after.kind == Document::Kind::kMap && now.sha256 == from_json<FileState>(after).sha256);
    if (now.exists && !ours && !(was.exists && now.sha256 == was.sha256)) {
      throw Error(ErrorCode::kConflict, fmt::format("{} was changed by somebody else since", path_.native()),
                  "put it as you want it and remove it from the way, or 'yoke link undo --force' to take back ours");
    }
    restore_file(path_, was, saved, owner_of(step_));
  }

 protected:
  Step step_;
  fs::path path_;
};

// Lines that are added to what is there. A key counts as there whatever its comment: see line_key().
class LinesAction final : public FileAction {
 public:
  explicit LinesAction(const Step& step) : FileAction(step) {
    for (const std::string& line : step.lines) {
      if (line.find_first_of("\r\n") == std::string::npos) continue;
      throw Error(ErrorCode::kInvalid,
                  fmt::format("a line for {} is several: '{}'", path_.native(), printable(line, 60)));
    }
  }

  bool satisfied() const override { return missing_lines().empty(); }

  std::vector<std::string> commands() const override {
    std::vector<std::string> lines = {fmt::format("add to {} (mode {:04o}):", path_.native(), step_.mode)};
    for (const std::string& line : missing_lines()) lines.push_back("  + " + line);
    return lines;
  }

  void apply() const override {
    const FileState now = inspect_file(path_, nullptr, owner_of(step_));
    make_folders(now, 0700, owner_of(step_));
    std::string content = read_if_there(path_, owner_of(step_));
    if (!content.empty() && content.back() != '\n') content += '\n';
    for (const std::string& line : missing_lines()) content += line + "\n";
    const FileOwner owner = now.exists ? FileOwner{now.uid, now.gid} : owner_of(step_);
    write_owned_file(path_, content, now.exists ? now.mode : step_.mode, owner, owner_of(step_));
  }

  // Where the file is as we left it, it becomes what it was, byte for byte. Where lines came since, ours alone go.
  void restore(const Document& before, const Document& after, const SavedBytes& saved) const override {
    const FileState was = from_json<FileState>(before);
    const FileState now = inspect_file(path_, nullptr, owner_of(step_));
    const bool as_left = after.kind == Document::Kind::kMap && now.sha256 == from_json<FileState>(after).sha256;
    const bool cut_short = after.kind != Document::Kind::kMap && now.sha256 == would_be(was, saved);
    remove_unfinished(path_, owner_of(step_));
    // Cut short before it was written: the folders above may be there already.
    if (!now.exists && !was.exists) return restore_file(path_, was, saved, owner_of(step_));
    if (!now.exists || now.sha256 == was.sha256) return;
    if (as_left || cut_short) return restore_file(path_, was, saved, owner_of(step_));
    const std::string earlier = was.exists ? saved.get(was.sha256) : "";
    const std::vector<std::string> there_before = split(earlier, '\n');
    std::string content;
    for (const std::string& line : split(trim(read_if_there(path_, owner_of(step_))), '\n')) {
      const bool ours = std::find(step_.lines.begin(), step_.lines.end(), line) != step_.lines.end() &&
                        std::find(there_before.begin(), there_before.end(), line) == there_before.end();
      if (!ours) content += line + "\n";
    }
    write_owned_file(path_, content, now.mode, {now.uid, now.gid}, owner_of(step_));
  }

 private:
  // A line without what comes after its key: "ssh-ed25519 AAAA…", and in known_hosts the names in front of that.
  static std::string line_key(const std::string& line) {
    const std::vector<std::string> words = split(line, ' ');
    std::string key;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      key += words[i] + " ";
      if (words[i].starts_with("ssh-") || words[i].starts_with("ecdsa-")) return key + words[i + 1];
    }
    return line;
  }

  static std::vector<std::string> lines_missing_in(const std::string& content, const std::vector<std::string>& wanted) {
    std::vector<std::string> there;
    for (const std::string& line : split(content, '\n')) there.push_back(line_key(line));
    std::vector<std::string> missing;
    for (const std::string& line : wanted) {
      if (std::find(there.begin(), there.end(), line_key(line)) == there.end()) missing.push_back(line);
    }
    return missing;
  }

  std::vector<std::string> missing_lines() const {
    return lines_missing_in(read_if_there(path_, owner_of(step_)), step_.lines);
  }

  // The hash that apply() would have left.
  std::string would_be(const FileState& was, const SavedBytes& saved) const {
    std::string content = was.exists ? saved.get(was.sha256) : "";
    const std::vector<std::string> missing = lines_missing_in(content, step_.lines);
    if (!content.empty() && content.back() != '\n') content += '\n';
    for (const std::string& line : missing) content += line + "\n";
    return sha256_hex(content);
  }
};

class KeyPairAction final : public StepAction {
 public:
  explicit KeyPairAction(const Step& step) : step_(step), path_(path_of(step)), public_path_(path_.native() + ".pub") {}

  // Half of a pair is the user's, whichever it is (the other may be in an agent or a token), and is never touched.
  bool satisfied() const override {
    const bool has_private = fs::exists(path_);
    const bool has_public = fs::exists(public_path_);
    if (has_private && !has_public) {
      throw Error(ErrorCode::kConflict, fmt::format("{} is there, but not {}", path_.native(), public_path_.native()),
                  fmt::format("'ssh-keygen -y -f {}' prints what belongs there", path_.native()));
    }
    if (has_public && !has_private) {
      throw Error(ErrorCode::kConflict, fmt::format("{} is there, but not {}", public_path_.native(), path_.native()),
                  "the other half may be in an agent or a token: rename the file, and a pair for the nodes is made");
    }
    return has_private;
  }
  std::vector<std::string> commands() const override { return {to_string(Command{.argv = argv(path_)})}; }

  // Made elsewhere and moved in, the public half last: what is there is complete.
  void apply() const override {
    if (satisfied()) throw Error(ErrorCode::kConflict, fmt::format("{} is there already", path_.native()));
    const ScratchDir scratch(kKeyScratch);
    run_or_throw({.argv = argv(scratch.path() / "key"), .timeout = 30_s});
    const FileOwner owner = owner_of(step_);
    make_folders(inspect_file(path_, nullptr, owner_of(step_)), 0700, owner);
    write_owned_file(path_, read_file(scratch.path() / "key"), 0600, owner, owner, Existing::kStays);
    write_owned_file(public_path_, read_file(scratch.path() / "key.pub"), 0644, owner, owner, Existing::kStays);
  }

  Document capture(const SavedBytes&) const override {
    return Document::map({{"private", to_json(inspect_file(path_, nullptr, owner_of(step_)))},
                          {"public", to_json(inspect_file(public_path_, nullptr, owner_of(step_)))}});
  }

  // A key that was there is never touched, and no more is one that the user has put in the place of ours since. Ours
  // goes, with the folder that came with it.
  void restore(const Document& before, const Document& after, const SavedBytes& saved) const override {
    const FileState was_public = from_json<FileState>(*before.find("public"));
    const FileState was_private = from_json<FileState>(*before.find("private"));
    refuse_others(public_path_, was_public, after, "public");
    refuse_others(path_, was_private, after, "private");
    if (!was_public.exists) restore_file(public_path_, was_public, saved, owner_of(step_));
    if (!was_private.exists) restore_file(path_, was_private, saved, owner_of(step_));
  }

 private:
  void refuse_others(const fs::path& file, const FileState& was, const Document& after, const char* half) const {
    if (was.exists || after.kind != Document::Kind::kMap) return;
    const FileState now = inspect_file(file, nullptr, owner_of(step_));
    if (!now.exists || now.sha256 == from_json<FileState>(*after.find(half)).sha256) return;
    throw Error(ErrorCode::kConflict, fmt::format("{} was changed by somebody else since", file.native()),
                "a key of your own: keep a copy of it, then 'yoke link undo --force' takes the pair away");
  }
  std::vector<std::string> argv(const fs::path& file) const {
    return {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", step_.content, "-f", file.native()};
  }

  Step step_;
  fs::path path_, public_path_;
};

}  // namespace

void remove_abandoned_scratch() {
  ScratchDir::remove_abandoned(kKeyScratch);
  ScratchDir::remove_abandoned(kNetplanScratch);
}

std::unique_ptr<StepAction> make_file_action(const Step& step) { return std::make_unique<FileAction>(step); }
std::unique_ptr<StepAction> make_lines_action(const Step& step) { return std::make_unique<LinesAction>(step); }
std::unique_ptr<StepAction> make_key_pair_action(const Step& step) { return std::make_unique<KeyPairAction>(step); }

}  // namespace yoke::link
