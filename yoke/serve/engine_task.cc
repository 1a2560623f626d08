#include "yoke/serve/engine_task.h"

#include <fmt/format.h>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/engine/rank.h"
#include "yoke/job/job.h"
#include "yoke/rank/rank_part.h"

namespace yoke {
namespace {

using namespace literals;

constexpr Seconds kFrontLimit{10};  // the asker listens before it starts us
// One rank may read a layer from a slow disk while the others wait. Who dies or stands still is told by heartbeats.
constexpr Seconds kOperationLimit{300};

// A path as the text that it is.
struct PathText {
  std::filesystem::path* value;
};
void write_field(Document& document, const PathText& path) { document = Document::string(path.value->native()); }
void read_field(const Document& document, PathText& path) { *path.value = from_document<std::string>(document); }

struct ClusterField {
  std::optional<Cluster>* value;
};
void write_field(Document& document, const ClusterField& cluster) {
  if (*cluster.value) document = to_json(**cluster.value);
}
void read_field(const Document& document, ClusterField& cluster) { *cluster.value = cluster_from_json(document); }

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, EngineTask& task) {
  PathText model{&task.engine.model};
  PathText front{&task.front};
  ClusterField cluster{&task.cluster};
  visit.required("model", model);
  visit.required("backend", task.engine.backend);
  visit.required("threads", task.engine.threads);
  visit.required("context_most", task.engine.context_most);
  visit.required("cache_tokens", task.engine.cache_tokens);
  visit.required("cache_type", task.engine.cache_type);
  visit.required("chunk_tokens", task.engine.chunk_tokens);
  visit.required("sequences_most", task.engine.sequences_most);
  visit.required("transport", task.transport);
  visit.required("front", front);
  visit.optional("cluster", cluster);
}

namespace {

void run_rank() {
  const Environment environment = environment_now();
  const auto place = find_rank_place(environment);
  const auto text = environment.find(kEngineTaskVariable);
  if (!place || text == environment.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} is started by 'yoke run', not by hand", kEnginePart));
  }
  const EngineTask task = read_task(text->second);
  std::optional<Socket> front;
  // Before joining: the front then sees this rank's end, however early it comes.
  if (place->rank == 0) front = connect_unix(task.front, Deadline::after(kFrontLimit));
  const auto world = join_engine_world(*place, task.transport, task.cluster);
  run_engine_rank(*world, task.engine, std::move(front));
}

}  // namespace

std::unique_ptr<World> join_engine_world(RankPlace place, Transport transport, const std::optional<Cluster>& cluster) {
  if (place.node.empty()) place.node = this_machine().name;
  return join_world(place, {.carrier = carrier_of(transport),
                            .communicator = {.operation_timeout = kOperationLimit},
                            .cluster = cluster});
}

std::string print_task(const EngineTask& task) { return print_json(to_document(task), JsonLayout::kOneLine); }
EngineTask read_task(const std::string& text) {
  return from_document<EngineTask>(parse_json(text, kEngineTaskVariable));
}

std::optional<int> run_engine_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{kEnginePart}) return std::nullopt;
  return run_rank_part(run_rank);
}

}  // namespace yoke
