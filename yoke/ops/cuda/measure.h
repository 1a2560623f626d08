// What a GPU can do: the ceilings that benchmarks compare with, measured by kernels of our own.
#pragma once

namespace yoke::ops::cuda {

struct DeviceRates {
  double read = 0;      // bytes a second
  double copy = 0;      // bytes read and written a second
  double multiply = 0;  // operations a second of mma.sync in bf16, without any memory
};

// About 0.2 s; takes 2 GiB of the device's memory meanwhile, or a quarter of what is free. As make_backend("cuda"), it
// throws where there is no GPU to use.
DeviceRates measure_device(int device);

}  // namespace yoke::ops::cuda
