#include "yoke/check/remembered.h"

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"

namespace yoke::check {

template <class Visitor>
void visit_fields(Visitor& visit, RememberedCheck& check) {
  visit.required("when", check.when);
  visit.required("facts", check.facts);
}

struct MemoryRecord {
  std::string machine;  // its host name
  std::string processor;
  BytesPerSecond read;
  std::string when;
};
struct MemoryRecords {
  std::vector<MemoryRecord> machines;
};

template <class Visitor>
void visit_fields(Visitor& visit, MemoryRecord& record) {
  visit.required("machine", record.machine);
  visit.required("processor", record.processor);
  visit.required("read", record.read);
  visit.required("when", record.when);
}
template <class Visitor>
void visit_fields(Visitor& visit, MemoryRecords& records) {
  visit.required("machines", records.machines);
}

namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::optional<std::string>& key) {
  const fs::path folder = user_data_dir() / "checks";
  make_private_folder(folder);
  // A cluster's name is letters, digits, '-', '_' and '.', so that it is a file's name too.
  return folder / (key ? "cluster-" + *key + ".json" : "this-machine.json");
}

fs::path memory_records_file() {
  const fs::path folder = user_data_dir() / "checks";
  make_private_folder(folder);
  return folder / "memory-records.json";
}

MemoryRecords load_memory_records(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  return from_json<MemoryRecords>(parse_json(read_file(file), file.native()));
}

MemoryRecord& memory_record_of(MemoryRecords& records, const spec::Machine& machine) {
  for (MemoryRecord& record : records.machines) {
    if (record.machine == machine.hostname && record.processor == machine.cpu.model) return record;
  }
  return records.machines.emplace_back(MemoryRecord{machine.hostname, machine.cpu.model, {}, {}});
}

}  // namespace

void update_memory_records(spec::Survey& facts) {
  try {
    const fs::path file = memory_records_file();
    MemoryRecords records = load_memory_records(file);
    bool changed = false;
    for (spec::SurveyedNode& node : facts.nodes) {
      if (!node.machine || !node.canary || !node.canary->read) continue;
      MemoryRecord& record = memory_record_of(records, *node.machine);
      if (record.read.value > 0) {
        node.canary->record = record.read;
        node.canary->record_date = record.when.substr(0, record.when.find('T'));
      }
      if (node.canary->taken >= spec::kMaxTaken || *node.canary->read <= record.read) continue;
      record.read = *node.canary->read;
      record.when = utc_now();
      changed = true;
    }
    if (changed) write_file_atomically(file, print_json(to_document(records)) + "\n", {.mode = 0600});
  } catch (const Error& error) {
    log(LogLevel::kWarning, "the machines' memory records are not used: {}", error.message());
  }
}

void remember_check(const std::optional<std::string>& key, const spec::Survey& facts) {
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
    return from_json<RememberedCheck>(parse_json(read_file(file), file.native()));
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), "it was written by another version: delete it, then check again");
  }
}

}  // namespace yoke::check
