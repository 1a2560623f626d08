// Several models behind one address, more than fit at once. Each is a `yoke serve` of its own on a port of this
// machine, started when the first request for it comes; where no more fit, the one that was asked longest ago and has
// nothing to do is ended. The front is an UpstreamService for each, so that its requests outlive its server.
//
//   ModelPool pool(read_pool_file("models.yaml"), options);
//   pool.run();                            // the owner's thread: until a signal, then until all is answered
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "yoke/serve/api.h"
#include "yoke/serve/upstream_service.h"

namespace yoke::serve {

struct PoolModel {
  std::string name;                     // what clients call it
  std::string model = {};               // a folder or a name, as for `yoke serve`
  std::optional<std::string> upstream;  // instead: a server that is there already
  std::optional<std::string> cluster;   // over the nodes of this cluster file
  std::optional<int> ranks, context, running;
};
struct PoolSpec {
  std::vector<PoolModel> models;
  int loaded_max = 0;  // models at once; 0: all
};
// YAML; Error(kInvalid) names the line. Paths in it are relative to it.
PoolSpec read_pool_file(const std::filesystem::path& file);

struct PoolOptions {
  std::filesystem::path program;  // that is started for each model
  UpstreamOptions front;          // of all: its server and name are of no use here
};

class ModelPool : public ServiceTable {
 public:
  ModelPool(PoolSpec spec, PoolOptions options);
  ~ModelPool() override;

  void run();
  std::vector<Service*> all() override;
  Service& named(const std::string& name) override;

 private:
  class Entry;  // one model: its server, if it has one, and the front of it
  void place_models();
  bool make_room();

  const job::DeferredSignals held_;  // first: all threads inherit it
  const PoolSpec spec_;
  const PoolOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace yoke::serve
