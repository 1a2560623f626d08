#include "yoke/probe/nccl_folders.h"

#include <cctype>
#include <optional>

#include "yoke/base/text.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

constexpr int kMaxLoaderIncludes = 100;
constexpr std::size_t kMaxValue = 16384;  // a LD_LIBRARY_PATH of a few hundred folders

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Takes "$NAME" or "${NAME}" off the front of `rest`; nothing where a shell would have to work it out.
std::optional<std::string> take_variable(std::string_view& rest, const Variables& variables) {
  rest.remove_prefix(1);
  const bool braced = rest.starts_with('{');
  if (braced) rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && is_name_letter(rest[length])) ++length;
  const std::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  if (name.empty() || (braced && !rest.starts_with('}'))) return std::nullopt;
  if (braced) rest.remove_prefix(1);
  const auto known = variables.find(name);
  return known == variables.end() ? std::string() : known->second;
}

// The value of an assignment as a shell reads it, up to the first blank, ';' or '&' outside of quotes.
std::optional<std::string> expand(std::string_view rest, const Variables& variables) {
  std::string value;
  char quote = 0;
  if (rest.starts_with("~/")) {
    const auto home = variables.find("HOME");
    if (home == variables.end()) return std::nullopt;
    value = home->second;
    rest.remove_prefix(1);
  }
  while (!rest.empty()) {
    const char c = rest.front();
    if (value.size() > kMaxValue) return std::nullopt;
    if (c == '`' || c == '\\') return std::nullopt;
    if (quote == 0 && (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&')) break;
    if (c == '$' && quote != '\'') {
      const std::optional<std::string> text = take_variable(rest, variables);
      if (!text) return std::nullopt;
      value += *text;
      continue;
    }
    rest.remove_prefix(1);
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      value += c;
    }
  }
  if (quote != 0 || value.size() > kMaxValue) return std::nullopt;
  return value;
}

void add_loader_folders(const FileTree& files, const std::string& path, int& includes,
                        std::vector<std::string>& folders) {
  if (++includes > kMaxLoaderIncludes) return;
  for (const std::string& line : split(read_if_allowed(files, path).value_or(""), '\n')) {
    const std::string_view entry = trim(std::string_view(line).substr(0, line.find('#')));
    constexpr std::string_view kInclude = "include ";
    if (entry.starts_with('/')) folders.emplace_back(entry);
    if (!entry.starts_with(kInclude)) continue;
    // Distributions include one pattern, /etc/ld.so.conf.d/*.conf.
    const std::string_view pattern = trim(entry.substr(kInclude.size()));
    const std::size_t star = pattern.rfind("/*");
    if (star == std::string_view::npos) {
      add_loader_folders(files, std::string(pattern), includes, folders);
      continue;
    }
    const std::string folder(pattern.substr(0, star));
    for (const std::string& name : files.list(folder)) {
      if (name.ends_with(pattern.substr(star + 2))) add_loader_folders(files, folder + "/" + name, includes, folders);
    }
  }
}

}  // namespace

Variables with_shell_assignments(Variables variables, std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    std::string_view rest = line;  // what is indented is mostly under a condition, and left alone
    constexpr std::string_view kExport = "export ";
    if (rest.starts_with(kExport)) rest = trim(rest.substr(kExport.size()));
    const std::size_t equals = rest.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view name = rest.substr(0, equals);
    bool is_name = std::isdigit(static_cast<unsigned char>(name.front())) == 0;
    for (const char c : name) is_name = is_name && is_name_letter(c);
    if (!is_name) continue;
    if (std::optional<std::string> value = expand(rest.substr(equals + 1), variables)) {
      variables.insert_or_assign(std::string(name), *std::move(value));
    }
  }
  return variables;
}

std::vector<std::string> loader_folders(const FileTree& files) {
  std::vector<std::string> folders;
  int includes = 0;
  add_loader_folders(files, "/etc/ld.so.conf", includes, folders);
  return folders;
}

std::vector<std::string> nccl_folders(const FileTree& files, const Variables& environment) {
  std::vector<std::string> scripts = {"/etc/environment"};
  for (const std::string& name : files.list("/etc/profile.d")) {
    if (name.ends_with(".sh")) scripts.push_back("/etc/profile.d/" + name);
  }
  if (const auto home = environment.find("HOME"); home != environment.end() && home->second.starts_with('/')) {
    for (const char* name : {"/.profile", "/.bash_profile", "/.bashrc", "/.zshrc"}) {
      scripts.push_back(home->second + name);
    }
  }
  std::vector<std::string> folders;
  const auto add_named = [&](const Variables& variables) {
    for (const char* variable : {"NCCL_HOME", "NCCL_ROOT", "NCCL_ROOT_DIR", "NCCL_LIB_DIR", "NCCL_PATH"}) {
      const auto place = variables.find(variable);
      if (place == variables.end() || !place->second.starts_with('/')) continue;
      for (const char* below : {"", "/lib", "/lib64", "/build/lib"}) folders.push_back(place->second + below);
    }
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
      const auto place = variables.find(variable);
      if (place != variables.end() && place->second.starts_with('/')) folders.push_back(place->second + "/lib");
    }
    if (const auto paths = variables.find("LD_LIBRARY_PATH"); paths != variables.end()) {
      for (const std::string& folder : split(paths->second, ':')) {
        if (folder.starts_with('/')) folders.push_back(folder);
      }
    }
  };
  // Each file may set a variable again: what every one of them leads to may be in use by somebody.
  add_named(environment);
  Variables variables = environment;
  for (const std::string& script : scripts) {
    const std::optional<std::string> text = read_if_allowed(files, script);
    if (!text) continue;
    variables = with_shell_assignments(std::move(variables), *text);
    add_named(variables);
  }
  const std::vector<std::string> loader = loader_folders(files);
  folders.insert(folders.end(), loader.begin(), loader.end());
  return folders;
}

}  // namespace yoke::probe
