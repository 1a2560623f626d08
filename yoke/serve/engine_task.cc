#include "yoke/serve/engine_task.h"

#include "yoke/base/fields.h"
#include "yoke/engine/rank.h"

namespace yoke::serve {
namespace {

using namespace literals;

constexpr Seconds kClientLimit{10};  // the client listens before it starts us
// One rank may read a layer from a slow disk while the others wait. Who dies or stands still is told by heartbeats.
constexpr Seconds kOperationLimit{300};

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, EngineTask& task) {
  visit.required("model", task.engine.model);
  visit.required("backend", task.engine.backend);
  visit.required("exact", task.engine.exact);
  visit.required("threads", task.engine.threads);
  visit.required("context_max", task.engine.context_max);
  visit.required("cache_tokens", task.engine.cache_tokens);
  visit.required("cache_type", task.engine.cache_type);
  visit.required("chunk_tokens", task.engine.chunk_tokens);
  visit.required("sequences_max", task.engine.sequences_max);
  visit.optional("trace", task.engine.trace);
  visit.required("transport", task.transport);
  visit.required("client", task.client);
  visit.optional("cluster", task.cluster);
}

namespace {

void run_engine_process(const job::RankPlace& place, const Document& document) {
  const EngineTask task = from_json<EngineTask>(document);
  std::optional<Socket> client;
  // Before joining: the client then sees this rank's end, however early it comes.
  if (place.rank == 0) client = connect_unix(task.client, Deadline::after(kClientLimit));
  const auto world = rank::join_world(place, engine_world(task.transport, task.cluster));
  engine::run_engine_rank(*world, task.engine, std::move(client));
}

}  // namespace

rank::WorldOptions engine_world(rank::Transport transport, const std::optional<spec::Cluster>& cluster) {
  return {.transport = rank::between_processes(transport),
          .communicator = {.operation_timeout = kOperationLimit},
          .cluster = cluster};
}

Document to_json(const EngineTask& task) { return write_fields(task); }
void from_json(const Document& document, EngineTask& task) { read_fields(document, task); }

rank::RankKind engine_rank_kind() { return {.name = kEngineKind, .started_by = "yoke run", .run = run_engine_process}; }

}  // namespace yoke::serve
