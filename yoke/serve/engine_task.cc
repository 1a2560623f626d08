#include "yoke/serve/engine_task.h"

#include "yoke/base/fields.h"
#include "yoke/engine/rank.h"

namespace yoke {
namespace {

using namespace literals;

constexpr Seconds kFrontLimit{10};  // the client listens before it starts us
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

void run_engine_process(const RankPlace& place, const Document& document) {
  const EngineTask task = engine_task_from_json(document);
  std::optional<Socket> front;
  // Before joining: the front then sees this rank's end, however early it comes.
  if (place.rank == 0) front = connect_unix(task.front, Deadline::after(kFrontLimit));
  const auto world = join_world(place, engine_world(task.transport, task.cluster));
  run_engine_rank(*world, task.engine, std::move(front));
}

}  // namespace

WorldOptions engine_world(Transport transport, const std::optional<Cluster>& cluster) {
  return {.carrier = carrier_of(transport), .communicator = {.operation_timeout = kOperationLimit}, .cluster = cluster};
}

Document to_json(const EngineTask& task) { return to_document(task); }
EngineTask engine_task_from_json(const Document& document) { return from_document<EngineTask>(document); }

RankKind engine_rank_kind() { return {.name = kEngineKind, .started_by = "yoke run", .run = run_engine_process}; }

}  // namespace yoke
