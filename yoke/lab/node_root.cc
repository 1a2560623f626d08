#include "yoke/lab/node_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/hardware.h"
#include "yoke/lab/rights.h"

namespace yoke::lab {
namespace fs = std::filesystem;
namespace {

void mount_at(const char* source, const fs::path& target, const char* type, unsigned long flags,
              const std::string& data) {
  make_folder(target);
  if (mount(source, target.c_str(), type, flags, data.c_str()) != 0) {
    throw system_error(errno, fmt::format("cannot mount {} at {}", type ? type : source, target.native()));
  }
}

// Attributes that only root may write are kept as a user's, where there is no root.
std::string overlay_option() { return in_user_namespace() ? ",userxattr" : ""; }

// The machine's file or folder at the same place in the node, read-only; false where that cannot be had.
bool show_read_only(const fs::path& path, const fs::path& root, unsigned long flags = 0) {
  const fs::path target = root / path.relative_path();
  const auto make_target = [&] {
    make_folder(fs::is_directory(path) ? target : target.parent_path());
    if (!fs::is_directory(path)) write_file_atomically(target, "", {.mode = 0755});
  };
  if (!fs::exists(target) && !try_to(make_target)) return false;
  if (!try_to([&] { bind_mount(path, target, flags); })) return false;
  // Unlike a remount this keeps the flags that a user namespace may not change.
  mount_attr read_only{.attr_set = MOUNT_ATTR_RDONLY};
  if (mount_setattr(AT_FDCWD, target.c_str(), AT_RECURSIVE, &read_only, sizeof read_only) == 0) return true;
  umount2(target.c_str(), MNT_DETACH);
  return false;
}

// Disks that the host has mounted below its root are not part of an overlay of that root: they are shown read-only at
// the same place. What the kernel makes up (proc, sysfs, tmpfs and so on) is not shown.
void show_other_disks(const fs::path& root) {
  const std::set<std::string> disks = {"ext4",     "xfs", "btrfs", "zfs",     "overlay", "9p",
                                       "virtiofs", "nfs", "nfs4",  "fuseblk", "f2fs"};
  for (const std::string& line : split(read_file("/proc/self/mounts"), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 3 || words[1] == "/" || !disks.contains(words[2]) || words[1].find('\\') != std::string::npos)
      continue;
    if (words[1].starts_with(root.native()) || !fs::is_directory(words[1])) continue;
    (void)show_read_only(words[1], root);
  }
}

void lay_over(const fs::path& lower, const fs::path& folder, const fs::path& root) {
  const std::string name = lower.relative_path().native();
  make_folder(folder / "cow/upper" / name);
  make_folder(folder / "cow/works" / name);
  mount_at("yoke-lab", root / name, "overlay", 0,
           fmt::format("lowerdir={},upperdir={}/cow/upper/{},workdir={}/cow/works/{},userxattr", lower.native(),
                       folder.native(), name, folder.native(), name));
}

// File by file: fs::copy would stop at the first that is closed to us.
void copy_readable(const fs::path& source, const fs::path& target) {
  (void)try_to([&] { make_folder(target); });
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(source, ignored)) {
    const fs::path copy = target / entry.path().filename();
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      copy_readable(entry.path(), copy);
    } else {
      fs::copy(entry.path(), copy, fs::copy_options::copy_symlinks, ignored);
    }
  }
}

// A folder that has other mounts below cannot be part of an overlay in a user namespace, where it would uncover what
// they hide: it is shown as it is, read-only; /etc, which a node must write, is copied.
void show_folder(const fs::path& lower, const fs::path& folder, const fs::path& root) {
  if (try_to([&] { lay_over(lower, folder, root); })) return;
  if (lower == "/etc") return copy_readable(lower, root / lower.relative_path());
  if (show_read_only(lower, root, MS_REC) && lower == "/usr") lay_over("/usr/local/bin", folder, root);
}

// Without root: the root folder as a whole has mounts below, so each folder in it becomes an overlay of its own. They
// belong to nobody, and what belongs to nobody cannot be changed in an overlay; but a folder of ours in the upper layer
// is merged with theirs: new files can be made in it, and theirs be replaced.
void show_folders(const fs::path& folder, const fs::path& root) {
  make_folder(folder / "cow/top");
  make_folder(root);
  bind_mount(folder / "cow/top", root, 0);
  for (const char* ours : {"etc/ssh", "etc/netplan", "etc/sysctl.d", "etc/security", "etc/security/limits.d",
                           "etc/ld.so.conf.d", "usr/local/bin", "var/lib", "var/log", "var/spool", "var/cache"}) {
    if (fs::is_directory(fs::path("/") / ours)) make_folder(folder / "cow/upper" / ours);
  }
  make_folder(folder / "cow/upper/var");
  make_folder(folder / "cow/upper/var/tmp", 01777);
  const std::set<std::string> made_new = {"dev", "proc", "root", "run", "sys", "tmp"};
  for (const auto& entry : fs::directory_iterator("/")) {
    const std::string name = entry.path().filename();
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), root / name);
    } else if (entry.is_directory()) {
      make_folder(root / name);
      if (!made_new.contains(name)) show_folder(entry.path(), folder, root);
    }
  }
  for (const char* name : {"dev", "mnt"}) make_folder(root / name);
  mount_at("yoke-lab", root / "root", "tmpfs", MS_NOSUID | MS_NODEV, "mode=700");
}

// A copy-on-write view of the host's root, with what must be the node's own on top.
void make_root(const fs::path& folder, const fs::path& root, Bytes memory) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw system_error(errno, "cannot make mounts private");
  // What the node writes counts towards its memory; half of it, so that programs have the rest.
  mount_at("yoke-lab", folder / "cow", "tmpfs", 0, fmt::format("size={},mode=755", memory.value / 2));
  for (const char* part : {"upper", "work", "sys", "sys-upper", "sys-work"}) make_folder(folder / "cow" / part);
  const bool users = in_user_namespace();
  if (users) {
    show_folders(folder, root);
  } else {
    mount_at("yoke-lab", root, "overlay", 0,
             fmt::format("lowerdir=/,upperdir={0}/cow/upper,workdir={0}/cow/work", folder.native()));
    show_other_disks(root);
  }
  mount_at("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  bind_mount("/dev", root / "dev", MS_REC);
  if (users) {
    // The terminals of the machine's devpts could not be given to a user of the node.
    mount_at("devpts", root / "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5");
  }
  mount_at("yoke-lab", root / "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_at("yoke-lab", root / "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_at("yoke-lab", root / "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
  make_folder(root / "run/sshd");
  make_folder(root / "run/yoke-lab");
}

// The module of a cable that is approved for a Spark (Amphenol NJAAKK0006, 0.5 m, CMIS), as its EEPROM would say it.
std::string cable_eeprom() {
  std::string bytes(256, '\0');
  const auto put = [&](std::size_t at, std::string text) {
    text.resize(16, ' ');
    bytes.replace(at, 16, text);
  };
  bytes[0] = 0x1E;
  put(129, "Amphenol");
  put(148, "NJAAKK0006");
  bytes[202] = 0x05;
  bytes[212] = 0x0A;
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex + "\n";
}

// What a real kernel tells by ethtool stands among the hardware of cabled ports: a veth has no module.
void add_cables(const LabLayout& layout, const LabNode& node, MemoryTree& tree) {
  if (layout.hardware != "spark") return;
  for (const LabPort& port : lab_ports(tree)) {
    for (const LabInterface& interface : node.interfaces) {
      if (interface.name != port.interface || !interface.address) continue;
      if (const auto folder = tree.resolve("/sys/bus/pci/devices/" + port.pci_address)) {
        tree.add_file(*folder + "/module_eeprom", cable_eeprom());
      }
    }
  }
}

// sysfs of this network namespace, with the tree of the chosen hardware laid over it.
void make_hardware(const LabLayout& layout, const LabNode& node, const fs::path& folder, const fs::path& root) {
  mount_at("sysfs", folder / "cow/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  MemoryTree tree = lab_hardware({.machine = layout.hardware, .node = node.number});
  add_cables(layout, node, tree);
  write_tree(tree, folder / "cow/tree");
  make_folder(folder / "cow/tree/sys");
  mount_at("yoke-lab", root / "sys", "overlay", 0,
           fmt::format("lowerdir={0}/cow/tree/sys:{0}/cow/sys,upperdir={0}/cow/sys-upper,workdir={0}/cow/sys-work{1}",
                       folder.native(), overlay_option()));
  if (fs::exists("/sys/fs/cgroup"))
    mount("/sys/fs/cgroup", (root / "sys/fs/cgroup").c_str(), nullptr, MS_BIND | MS_REC, nullptr);
  if (fs::exists(folder / "cow/tree/etc")) {
    fs::copy(folder / "cow/tree/etc", root / "etc", fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
}

// The program itself, for ssh sessions and re-execution in the node; and in its own place, with the models that ship
// with it, where that is below a folder that is the node's own: people build in /tmp too.
void show_program(const fs::path& root) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path target = root / "usr/local/bin/yoke";
  make_folder(target.parent_path());
  if (!fs::exists(target)) write_file_atomically(target, "", {.mode = 0755});
  bind_mount(program, target, 0);
  std::vector<fs::path> needed = places_beside_program("models");
  needed.push_back(program);
  for (const fs::path& path : needed) {
    if (fs::exists(path) && !fs::exists(root / path.relative_path())) (void)show_read_only(path, root);
  }
}

}  // namespace

void bind_mount(const fs::path& source, const fs::path& target, unsigned long flags) {
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | flags, nullptr) != 0) {
    throw system_error(errno, fmt::format("cannot bind {} to {}", source.native(), target.native()));
  }
}

void change_root(const fs::path& root) {
  const fs::path old = root / "mnt";
  if (chdir(root.c_str()) != 0 || syscall(SYS_pivot_root, ".", old.c_str()) != 0)
    throw system_error(errno, "cannot change the root");
  if (chroot(".") != 0 || chdir("/") != 0 || umount2("/mnt", MNT_DETACH) != 0)
    throw system_error(errno, "cannot leave the old root");
}

std::vector<std::string> make_node_root(const LabLayout& layout, const LabNode& node, const fs::path& folder,
                                        const fs::path& root) {
  make_root(folder, root, layout.memory);
  std::vector<std::string> missing;
  if (const auto made = try_to([&] { make_hardware(layout, node, folder, root); }); !made) {
    if (!in_user_namespace()) throw made.error();
    missing.push_back(fmt::format("hardware tree: {}", made.error().message()));
    (void)try_to([&] { bind_mount("/sys", root / "sys", MS_REC); });
  }
  show_program(root);
  return missing;
}

}  // namespace yoke::lab
