// Seconds to draw an image, on one GPU or split by sequence over several.
#pragma once
#include "yoke/plan/serve.h"
#include "yoke/spec/image_facts.h"

namespace yoke::plan {

enum class ImageRunner { kEager, kCompiled };
enum class ImageSplit { kUlysses, kRing };

struct DrawCase {
  spec::ImageModelFacts model;
  Arithmetic arithmetic = Arithmetic::kBf16;
  ImageRunner runner = ImageRunner::kCompiled;
  ImageSplit split = ImageSplit::kUlysses;
  Machines machines;
  int gpus = 1;  // that share one image
  double width = 1024;
  double height = 1024;
  double steps = 28;
  double batch = 1;
};

struct DrawTime {
  double steps = 0;
  double encoders = 0;  // text encoders and the VAE: not split
  double exchange = 0;
  double total() const { return steps + encoders + exchange; }
};

DrawTime draw_time(const DrawCase& c, const Constants& constants);  // of one batch
// Every GPU holds all parts: splitting by sequence shortens the time and saves no weights.
double draw_memory(const DrawCase& c);

}  // namespace yoke::plan
