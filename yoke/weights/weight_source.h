// Where a model's weights come from: files (model_files.h), or made in place from a shape and a seed (made_weights.h).
// Models read through this and do not know which. Any thread may call it.
#pragma once
#include <string>

#include "yoke/base/document.h"
#include "yoke/tensor/matrix.h"

namespace yoke::weights {

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual std::string where() const = 0;  // for errors: a folder
  virtual const Document& config() const = 0;

  // A module's weight in whatever format it has: "lm_head", not "lm_head.weight". describe() reads no values. A slice
  // that would cut a quantization group is an Error whose hint names the numbers of ranks that work.
  virtual tensor::MatrixInfo describe(const std::string& module, const tensor::Slice& slice = {}) const = 0;
  virtual std::int64_t row_step(const std::string& module) const = 0;  // rows may be cut at its multiples
  virtual tensor::Matrix matrix(const std::string& module, const tensor::Slice& slice = {}) const = 0;
  // Norms and biases, copied.
  virtual tensor::Shape vector_shape(const std::string& name) const = 0;
  virtual tensor::Tensor vector(const std::string& name, const tensor::Slice& slice = {}) const = 0;

  virtual void will_need(const std::string& module, const tensor::Slice& slice = {}) const = 0;  // soon: read it ahead
  virtual void done_with(const tensor::Matrix& matrix) const = 0;                                // its source may go
  // The same for two sources only where they hold the same model.
  virtual std::string fingerprint() const = 0;
  virtual void check_unchanged() const = 0;  // Error(kConflict) where it was written to meanwhile
};

}  // namespace yoke::weights
