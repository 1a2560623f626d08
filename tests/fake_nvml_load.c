/* A stand-in for NVIDIA's libnvidia-ml.so.1 with eight GPUs, compiled by tests/watch_test.cc. What they do is read from
   the file FAKE_NVML_STATE at each question: one character for each GPU, '.' healthy, 't' slowed by heat, 'x' fallen off
   the bus, 'b' busy at a low clock, 'e' with memory errors. GPU 7 answers like a GB10: no memory, no NVLink, no ECC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, LOST = 15 };
typedef struct device {
  int index;
} * Device;
static struct device gpus[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

static char state_of(Device device) {
  char states[9] = "........";
  const char* path = getenv("FAKE_NVML_STATE");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (file) {
    if (fread(states, 1, 8, file) == 0) states[0] = '.';
    fclose(file);
  }
  return states[device->index];
}

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char* nvmlErrorString(int result) { return result == LOST ? "GPU is lost" : "?"; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 8, SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return *device = &gpus[index], state_of(*device) == 'x' ? LOST : SUCCESS;
}
int nvmlDeviceGetName(Device device, char* buffer, unsigned size) {
  return strncpy(buffer, device->index == 7 ? "NVIDIA GB10" : "NVIDIA B300", size), SUCCESS;
}
int nvmlDeviceGetUUID(Device device, char* buffer, unsigned size) {
  return snprintf(buffer, size, "GPU-%d", device->index), SUCCESS;
}
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned* value) {
  return (void)sensor, *value = state_of(device) == 't' ? 96 : 60, SUCCESS;
}
int nvmlDeviceGetClockInfo(Device device, int type, unsigned* value) {
  if (type == 2 && device->index == 7) return NOT_SUPPORTED;
  return *value = state_of(device) == 'b' ? 500 : 1900, SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned* value) {
  return (void)device, (void)type, *value = 2000, SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* value) {
  return *value = state_of(device) == 't' ? 0x20 : 0x4, SUCCESS;
}
int nvmlDeviceGetPowerUsage(Device device, unsigned* value) {
  return *value = state_of(device) == 'b' ? 100000 : 900000, SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* value) {
  return (void)device, *value = 1100000, SUCCESS;
}
int nvmlDeviceGetUtilizationRates(Device device, unsigned* value) {
  return (void)device, value[0] = 97, value[1] = 40, SUCCESS;
}
int nvmlDeviceGetMemoryInfo(Device device, unsigned long long* value) {
  if (device->index == 7) return NOT_SUPPORTED;
  return value[0] = 288ULL << 30, value[1] = 88ULL << 30, value[2] = 200ULL << 30, SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(Device device, int kind, int since, unsigned long long* count) {
  if (device->index == 7) return NOT_SUPPORTED;
  return (void)since, *count = state_of(device) == 'e' ? (kind == 1 ? 2 : 31) : 0, SUCCESS;
}
/* KiB over all links since boot: 40 GiB/s sent (138), 60 GiB/s received (139). */
typedef struct {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type, result;
  unsigned long long value;
} FieldValue;
int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
  for (int i = 0; i < count; ++i) {
    const int rate = values[i].field == 138 ? 40 : values[i].field == 139 ? 60 : 0;
    values[i].result = device->index == 7 || rate == 0 ? NOT_SUPPORTED : SUCCESS;
    values[i].value = (unsigned long long)(seconds * rate * (1 << 20));
  }
  return SUCCESS;
}
/* What the units did between two samples: only GPU 0 gives it. A sample is the time when it was taken. */
typedef struct sample {
  double seconds;
} * Sample;
typedef struct {
  unsigned metric;
  int result;
  double percent;
  const char *short_name, *long_name, *unit;
} Activity;
typedef struct {
  unsigned version, count;
  Sample before, after;
  Activity metrics[98];
} Activities;
int nvmlGpmQueryDeviceSupport(Device device, unsigned* support) {
  return support[1] = device->index == 0, support[0] == 1 ? SUCCESS : NOT_SUPPORTED;
}
int nvmlGpmSampleAlloc(Sample* sample) { return *sample = calloc(1, sizeof **sample), SUCCESS; }
int nvmlGpmSampleFree(Sample sample) { return free(sample), SUCCESS; }
int nvmlGpmSampleGet(Device device, Sample sample) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  sample->seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
  return device->index == 0 ? SUCCESS : NOT_SUPPORTED;
}
int nvmlGpmMetricsGet(Activities* wanted) {
  if (wanted->version != 1 || wanted->after->seconds <= wanted->before->seconds) return NOT_SUPPORTED;
  for (unsigned i = 0; i < wanted->count; ++i) {
    Activity* const activity = &wanted->metrics[i];
    activity->result = activity->metric == 5 ? NOT_SUPPORTED : SUCCESS;
    activity->percent = activity->metric == 1 ? 97.5 : 40;
  }
  return SUCCESS;
}
