#include "yoke/serve/engine_task.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke {
namespace {

TEST(EngineTask, IsReadByARankAsTheClientWroteIt) {
  Cluster cluster;
  cluster.name = "desk";
  cluster.nodes = {{.name = "spark-1", .address = "192.168.1.21"}, {.name = "spark-2", .address = "192.168.1.22"}};
  const EngineTask task{.engine = {.model = "/models/llama with a blank",
                                   .backend = "ref",
                                   .threads = 3,
                                   .context_most = 4096,
                                   .cache_tokens = 8192,
                                   .cache_type = DType::kBf16,
                                   .chunk_tokens = 64,
                                   .sequences_most = 5},
                        .transport = Transport::kDirect,
                        .cluster = cluster,
                        .front = "/tmp/x/front"};
  const EngineTask got = engine_task_from_json(parse_json(print_json(to_json(task)), "task"));
  EXPECT_EQ(got.engine.model, task.engine.model);
  EXPECT_EQ(got.engine.backend, "ref");
  EXPECT_EQ(got.engine.threads, 3);
  EXPECT_EQ(got.engine.context_most, 4096);
  EXPECT_EQ(got.engine.cache_tokens, 8192);
  EXPECT_EQ(got.engine.cache_type, DType::kBf16);
  EXPECT_EQ(got.engine.chunk_tokens, 64);
  EXPECT_EQ(got.engine.sequences_most, 5);
  EXPECT_EQ(got.transport, Transport::kDirect);
  EXPECT_EQ(got.front, "/tmp/x/front");
  ASSERT_TRUE(got.cluster);
  EXPECT_EQ(got.cluster->nodes.back().name, "spark-2");
  EXPECT_FALSE(engine_task_from_json(to_json(EngineTask{.engine = {.model = "m"}, .front = "f"})).cluster);
}

TEST(EngineTask, WhatIsNoTaskIsRefused) {
  for (const char* wrong : {"[]", "{}", R"({"model": 1})"})
    EXPECT_ERROR(engine_task_from_json(parse_json(wrong, "task")), ErrorCode::kInvalid, "task") << wrong;
}

}  // namespace
}  // namespace yoke
