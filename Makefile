# The front door. PRESET chooses the kind of build (CMakePresets.json); the program is always build/yoke.
PRESET ?= release
JOBS ?= $(shell nproc)
# Many tests wait for labs: two more than there are cores keep the cores busy, and leave those that measure room.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
PREFIX ?= /usr/local
SOAK_MINUTES ?= 10
GAMEDAY ?=

.PHONY: build test gameday soak bench install test-aarch64 format tidy clean deps test-deps

build: deps
	@scripts/build $(PRESET) -j $(JOBS) yoke

test: deps test-deps
	@scripts/build $(PRESET) -j $(JOBS)
	@scripts/run-tests build/$(PRESET) -j $(TEST_JOBS)

# The whole story in a lab, or on the cluster of cluster.yaml; further options go into GAMEDAY.
gameday: build
	@scripts/install-deps lab
	@build/yoke gameday --report build/gameday-report.html $(GAMEDAY)

# Long rounds: the fuzzers on libFuzzer, the sanitizer builds, and the program in a bare Debian root.
soak: deps test-deps
	@scripts/install-deps soak
	@scripts/soak $(SOAK_MINUTES)

bench: build
	@scripts/bench

install: build
	@scripts/install $(PREFIX)

# The whole program and its unit tests for 64-bit Arm, run under qemu's user emulation.
test-aarch64: deps test-deps
	@scripts/install-deps aarch64
	@scripts/build aarch64 -j $(JOBS)
	@scripts/run-tests build/aarch64 -j $(JOBS)

format:
	@git ls-files -- '*.cc' '*.h' | xargs clang-format -i

# Each file as it stands alone, and each folder as if it were one file.
tidy: deps test-deps
	@scripts/check-names
	@cmake --preset $(PRESET) -B build/tidy -D CMAKE_UNITY_BUILD=OFF -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
	@git ls-files -- 'yoke/*.cc' | xargs -P $(JOBS) -n 4 clang-tidy -p build/tidy --quiet

clean:
	@rm -rf build

deps:
	@scripts/install-deps build

test-deps:
	@scripts/install-deps test
