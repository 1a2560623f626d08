/* A stand-in for NVIDIA's libnvidia-ml.so.1, compiled by tests/probe_test.cc: two GPUs joined by a switch, of which the
   second does not support what a GB10 does not. Only what the probe asks for. FAKE_NVML=broken makes nvmlInit fail. */
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, MISMATCH = 18 };
typedef struct nvmlDevice_st {
  int index;
} * Device;
static struct nvmlDevice_st gpus[2] = {{0}, {1}};

typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  unsigned gpu, memory;
} Utilization;
typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
} PciInfo;
typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} ProcessInfo;

static int text(char* buffer, unsigned size, const char* value) {
  strncpy(buffer, value, size);
  return SUCCESS;
}

int nvmlInit_v2(void) {
  const char* mode = getenv("FAKE_NVML");
  return mode && strcmp(mode, "broken") == 0 ? MISMATCH : SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char* nvmlErrorString(int result) { return result == MISMATCH ? "Driver/library version mismatch" : "?"; }
int nvmlSystemGetDriverVersion(char* buffer, unsigned size) { return text(buffer, size, "580.95.05"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13010, SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) { return *device = &gpus[index], SUCCESS; }
int nvmlDeviceGetName(Device device, char* buffer, unsigned size) {
  return text(buffer, size, device->index ? "NVIDIA GB10" : "NVIDIA H200");
}
int nvmlDeviceGetUUID(Device device, char* buffer, unsigned size) {
  return text(buffer, size, device->index ? "GPU-2" : "GPU-1");
}
int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return *major = device->index ? 12 : 9, *minor = device->index, SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return text(pci->bus_id, sizeof pci->bus_id, device->index ? "0000000F:01:00.0" : "00000000:1B:00.0");
}
int nvmlDeviceGetPersistenceMode(Device device, int* mode) { return *mode = !device->index, SUCCESS; }
int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  if (device->index) return NOT_SUPPORTED;
  return memory->total = 150754820096ULL, memory->free = 150000000000ULL, memory->used = 754820096ULL, SUCCESS;
}
int nvmlDeviceGetClockInfo(Device device, int kind, unsigned* mhz) {
  (void)device;
  return *mhz = kind == 0 ? 345 : 0, SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(Device device, int kind, unsigned* mhz) {
  return *mhz = kind == 0 ? (device->index ? 3003 : 1980) : 3201, SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return *reasons = device->index ? 0x1 : 0x4 | 0x20 | 0x40, SUCCESS;
}
int nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return *milliwatts = device->index ? 11500 : 76250, SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
  return device->index ? NOT_SUPPORTED : (*milliwatts = 700000, SUCCESS);
}
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned* celsius) {
  return *celsius = device->index ? 50 : 33, sensor ? INVALID : SUCCESS;
}
int nvmlDeviceGetUtilizationRates(Device device, Utilization* used) {
  return used->gpu = device->index ? 0 : 97, used->memory = 5, SUCCESS;
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, int* active) {
  if (link >= 4) return INVALID;
  return *active = !(device->index && link == 3), SUCCESS;
}
/* Rises with every call for the first link's replays, as of a link that is failing; the second GPU refuses. */
int nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, int kind, unsigned long long* count) {
  static unsigned long long replays = 0;
  if (device->index) return NOT_SUPPORTED;
  *count = link == 0 && kind == 0 ? ++replays : link == 1 && kind == 1 ? 2 : 0;
  return SUCCESS;
}
typedef struct {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
} FabricInfo;
int nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  if (device->index) return NOT_SUPPORTED;
  return info->state = 2, info->status = SUCCESS, SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(Device device, int kind, int since, unsigned long long* count) {
  if (device->index) return NOT_SUPPORTED;
  return *count = kind == 1 ? (since ? 7 : 3) : 0, SUCCESS;
}
int nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  if (device->index) return NOT_SUPPORTED;
  return *corrected = 0, *uncorrected = 1, *pending = 1, *failed = 0, SUCCESS;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* milliwatts) {
  return device->index ? NOT_SUPPORTED : (*milliwatts = 700000, SUCCESS);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int* kind) {
  (void)device, (void)link;
  return *kind = 2, SUCCESS;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  (void)device, (void)link;
  return text(pci->bus_id, sizeof pci->bus_id, "00000000:05:00.0");
}
int nvmlDeviceGetCpuAffinity(Device device, unsigned size, unsigned long* mask) {
  (void)device;
  memset(mask, 0, size * sizeof *mask);
  return mask[0] = 0xFF, SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
  if (device->index) return *count = 0, SUCCESS;
  processes[0].pid = 4711, processes[0].used = 1 << 30;
  processes[1].pid = 4712, processes[1].used = ~0ULL;
  return *count = 2, SUCCESS;
}
