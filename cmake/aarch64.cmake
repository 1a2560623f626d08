# Cross-build for 64-bit Arm with Debian's multiarch packages: scripts/install-deps --aarch64 installs them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# The native archives lie beside the foreign ones; only the multiarch folder is ours.
set(CMAKE_SYSTEM_LIBRARY_PATH /usr/lib/aarch64-linux-gnu)
set(CMAKE_IGNORE_PATH /usr/lib /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu)
# With -L / the emulator finds the foreign loader at /lib/ld-linux-aarch64.so.1.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;/")
