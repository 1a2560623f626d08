// Manifests against the schemas that the operators of Kubernetes publish (LeaderWorkerSet, JobSet, MPIJob). The schemas
// are large and not ours: YOKE_CRDS names a folder with lws.yaml, jobset.yaml and mpijob.yaml, which are
//   kubernetes-sigs/lws          config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml
//   kubernetes-sigs/jobset       config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml
//   kubeflow/mpi-operator        manifests/base/kubeflow.org_mpijobs.yaml
#include <gtest/gtest.h>

#include <cstdlib>

#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/yaml.h"
#include "yoke/launch/launch_cases_testing.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

std::string manifest_of(const std::string& engine, const LaunchCase& where) {
  LaunchOptions options{.model = "/models/m", .image = "example.org/image:1"};
  if (load_engine(engine).rest == "required") options.rest = {"train.py", "--note=a b$c"};
  const LaunchPlan plan = plan_launch(load_engine(engine), options, where.nodes, {});
  return kubernetes_manifest(plan, {.rdma_resource = "rdma/hca", .hugepages = Bytes{2LL << 30}}).text;
}

TEST(ManifestSchema, EveryManifestIsWhatItsOperatorAccepts) {
  const char* folder = std::getenv("YOKE_CRDS");
  if (!folder || !*folder) GTEST_SKIP() << "YOKE_CRDS names no folder with the schemas";
  const ScratchDir scratch;
  const auto problems_of = [&](const std::string& crd, const std::string& version, const std::string& manifest) {
    write_file_atomically(scratch.path() / "manifest.yaml", manifest);
    const Outcome outcome =
        run({.argv = {"/usr/bin/python3", std::string(YOKE_SOURCE_DIR) + "/tests/data/check_manifest.py",
                      std::string(folder) + "/" + crd + ".yaml", version, scratch.path() / "manifest.yaml"}});
    return outcome.ok() ? outcome.out : "check_manifest.py " + outcome.describe();
  };
  struct Case {
    const char *engine, *file, *version;
  };
  for (const Case& one : {Case{"vllm", "lws", "v1"}, Case{"sglang", "lws", "v1"}, Case{"yoke", "lws", "v1"},
                          Case{"torchrun", "jobset", "v1alpha2"}, Case{"nemo", "jobset", "v1alpha2"},
                          Case{"xdit", "jobset", "v1alpha2"}, Case{"trtllm", "mpijob", "v2beta1"}}) {
    for (const LaunchCase& where : {two_servers(), three_sparks()}) {
      EXPECT_EQ(problems_of(one.file, one.version, manifest_of(one.engine, where)), "") << one.engine;
    }
    std::string wrong = manifest_of(one.engine, two_servers());
    wrong.insert(wrong.find("\nspec:\n") + 7, "  sise: 2\n");
    EXPECT_EQ(problems_of(one.file, one.version, wrong), "spec.sise is no key of the schema\n")
        << "a wrong key is seen";
  }
}

}  // namespace
}  // namespace yoke::launch
