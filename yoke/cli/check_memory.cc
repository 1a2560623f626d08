#include "yoke/cli/check_memory.h"

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke {

inline void read_field(const Document& document, Survey& value) { value = survey_from_json(document); }
inline void write_field(Document& document, const Survey& value) { document = to_json(value); }

template <class Visitor>
void visit_fields(Visitor& visit, RememberedCheck& check) {
  visit.required("when", check.when);
  visit.required("facts", check.facts);
}

namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::optional<std::string>& key) {
  const fs::path folder = user_data_dir() / "checks";
  make_private_folder(folder);
  // A cluster's name is letters, digits, '-', '_' and '.', so that it is a file's name too.
  return folder / (key ? "cluster-" + *key + ".json" : "this-machine.json");
}

}  // namespace

void remember_check(const std::optional<std::string>& key, const Survey& facts) {
  RememberedCheck check{utc_now(), facts};
  // What was not measured this time was well the last time.
  if (!facts.measurement) {
    const auto last = try_to([&] { return recall_check(key); });
    if (last && *last) check.facts.measurement = (*last)->facts.measurement;
  }
  write_file_atomically(file_of(key), print_json(to_document(check)) + "\n", {.mode = 0600});
}

std::optional<RememberedCheck> recall_check(const std::optional<std::string>& key) {
  const fs::path file = file_of(key);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  try {
    return from_document<RememberedCheck>(parse_json(read_file(file), file.native()));
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), "it was written by another version: delete it, and check anew");
  }
}

}  // namespace yoke
