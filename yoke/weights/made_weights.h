// The weights of a made model (make_model.h) without its files: each matrix is made when it is asked for. The same seed
// gives the same weights as the files that make_model() writes. For models whose files nobody wants to have: a shape of
// 405B on one machine is measured without 200 GB on a disk.
#pragma once
#include <map>
#include <string>

#include "yoke/weights/made_tensors.h"
#include "yoke/weights/weight_source.h"

namespace yoke::weights {

class MadeWeights final : public WeightSource {
 public:
  explicit MadeWeights(const MakeModelOptions& options);

  std::string where() const override { return "made weights"; }
  const Document& config() const override { return config_; }
  tensor::MatrixInfo describe(const std::string& module, const tensor::Slice& slice = {}) const override;
  std::int64_t row_step(const std::string& module) const override;
  tensor::Matrix matrix(const std::string& module, const tensor::Slice& slice = {}) const override;
  tensor::Shape vector_shape(const std::string& name) const override;
  tensor::Tensor vector(const std::string& name, const tensor::Slice& slice = {}) const override;
  void will_need(const std::string&, const tensor::Slice& = {}) const override {}
  void done_with(const tensor::Matrix&) const override {}
  std::string fingerprint() const override;
  void check_unchanged() const override {}

 private:
  enum class Content { kNone, kMade };
  const MadeTensor& entry(const std::string& name) const;
  tensor::Tensor tensor(const std::string& name, Content content) const;
  tensor::Matrix whole(const std::string& module, Content content) const;

  MakeModelOptions options_;
  Document config_;
  std::map<std::string, MadeTensor> tensors_;
};

}  // namespace yoke::weights
