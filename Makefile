# The front door. PRESET chooses the kind of build (CMakePresets.json); the program is always build/yoke.
PRESET ?= release
JOBS ?= $(shell nproc)
# Many tests wait for labs: two more than there are cores keep the cores busy, and leave those that measure room.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
PREFIX ?= /usr/local
SOAK_MINUTES ?= 10
GAMEDAY ?=

.PHONY: build test gameday soak bench install deb test-aarch64 bare-root format tidy clean

# `build`, `gameday`, `bench` and `install` need no test library: a fresh machine installs only what it uses.
build:
	@scripts/install-deps build
	@scripts/build $(PRESET) -j $(JOBS) yoke

test:
	@scripts/install-deps build test
	@scripts/install-clients --if-possible
	@scripts/build $(PRESET) --tests -j $(JOBS)
	@scripts/run-tests build/$(PRESET) -j $(TEST_JOBS)

# The whole story in a lab, or on the cluster of cluster.yaml; further options go into GAMEDAY. The packages of the lab
# come before minutes of compiling, not after.
gameday:
	@scripts/install-deps build lab
	@scripts/build $(PRESET) -j $(JOBS) yoke
	@build/yoke gameday --report build/gameday-report.html $(GAMEDAY)

# Long rounds: the fuzzers on libFuzzer, the sanitizer builds, and README's commands in a bare Debian root.
soak:
	@scripts/install-deps build test soak
	@scripts/soak $(SOAK_MINUTES)

bench: build
	@scripts/bench

install: build
	@scripts/install $(PREFIX)

# Packages for Debian 12 and Ubuntu 24.04; scripts/try-deb installs, runs and purges both in a bare root.
deb:
	@JOBS=$(JOBS) scripts/deb

# README's commands as a newcomer types them, in a Debian root with nothing but make and git.
bare-root:
	@scripts/install-deps bare-root
	@scripts/try-bare-root

# The whole program and its unit tests for 64-bit Arm, run under qemu's user emulation.
test-aarch64:
	@scripts/install-deps build test aarch64-test
	@scripts/build aarch64 --tests -j $(JOBS)
	@scripts/run-tests build/aarch64 -j $(JOBS)

format:
	@git ls-files -- '*.cc' '*.h' | xargs clang-format -i

# Each file as it stands alone, and each folder as if it were one file.
tidy:
	@scripts/install-deps build test
	@scripts/check-names
	@cmake --preset $(PRESET) -B build/tidy -D YOKE_TESTS=ON -D CMAKE_UNITY_BUILD=OFF -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
	@git ls-files -- 'yoke/*.cc' | xargs -P $(JOBS) -n 4 clang-tidy -p build/tidy --quiet

clean:
	@rm -rf build
