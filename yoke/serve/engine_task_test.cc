#include "yoke/serve/engine_task.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::serve {
namespace {

TEST(EngineTask, IsReadByARankAsTheClientWroteIt) {
  spec::Cluster cluster;
  cluster.name = "desk";
  cluster.nodes = {{.name = "spark-1", .address = "192.168.1.21"}, {.name = "spark-2", .address = "192.168.1.22"}};
  const EngineTask task{.engine = {.model = "/models/llama with a blank",
                                   .backend = "ref",
                                   .exact = true,
                                   .threads = 3,
                                   .context_max = 4096,
                                   .cache_tokens = 8192,
                                   .cache_type = tensor::DType::kBf16,
                                   .chunk_tokens = 64,
                                   .sequences_max = 5},
                        .transport = rank::Transport::kDirect,
                        .cluster = cluster,
                        .client = "/tmp/x/client"};
  const EngineTask got = from_json<EngineTask>(parse_json(print_json(to_json(task)), "task"));
  EXPECT_EQ(got.engine.model, task.engine.model);
  EXPECT_EQ(got.engine.backend, "ref");
  EXPECT_TRUE(got.engine.exact);
  EXPECT_EQ(got.engine.threads, 3);
  EXPECT_EQ(got.engine.context_max, 4096);
  EXPECT_EQ(got.engine.cache_tokens, 8192);
  EXPECT_EQ(got.engine.cache_type, tensor::DType::kBf16);
  EXPECT_EQ(got.engine.chunk_tokens, 64);
  EXPECT_EQ(got.engine.sequences_max, 5);
  EXPECT_EQ(got.transport, rank::Transport::kDirect);
  EXPECT_EQ(got.client, "/tmp/x/client");
  ASSERT_TRUE(got.cluster);
  EXPECT_EQ(got.cluster->nodes.back().name, "spark-2");
  EXPECT_FALSE(from_json<EngineTask>(to_json(EngineTask{.engine = {.model = "m"}, .client = "f"})).cluster);
}

TEST(EngineTask, WhatIsNoTaskIsRefused) {
  for (const char* wrong : {"[]", "{}", R"({"model": 1})"})
    EXPECT_ERROR(from_json<EngineTask>(parse_json(wrong, "task")), ErrorCode::kInvalid, "task") << wrong;
}

}  // namespace
}  // namespace yoke::serve
