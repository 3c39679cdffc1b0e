#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the /proc, /sys and /dev of a described machine:   mkroot.py hgx-h100.machine ROOT

ROOT is for LAUNCH_SYSROOT; ROOT/nvml is what the fake libnvidia-ml serves (FAKE_NVML_MACHINE). A description has one
thing a line, words and key=value pairs, '#' begins a comment:

    cpu AuthenticAMD name="AMD EPYC 7543" threads=2       threads per core; siblings=adjacent: CPUs 0 and 1 are one core
    package                                               CPUs are numbered through packages, nodes and l3 groups in order,
    node memory=64                                        all first threads before all second ones (as Linux does);
    l3 cores=8 count=2                                    GiB; two groups of 8 cores, each around one L3 cache
    node id=2 memory=96 cpus=none                         a node of memory only (a GPU's, CXL)
    offline 3 64-71                                       CPUs that are switched off
    allowed 0-2                                           the cpuset of the container
    driver nvidia version=580.159.04                      nvml=no: the library is not there; driver amd
    root 0000:15 node=0                                   a PCIe host bridge; below it, indented, what hangs where:
      0000:15:01.0 bridge
        0000:16:00.0 gpu name="NVIDIA L40S" gen=4 width=16 max_gen=5 max_width=16
        0000:17:00.0 nic ib=mlx5_0 rate=400 net=ib0       Gb/s; link=Ethernet, state=down
    nvlink all 18 version=4 speed=26562                   every GPU has 18 links to NVSwitches; MB/s of a link
    nvlink 0 1 12                                         12 links straight from GPU 0 to GPU 1; nvlink 2 down 3
    xgmi all speed=64000                                  or: xgmi 0 1
    p2p r 0 1 CNS                                         r|w|n|a|p; * is every GPU, every kind
    process 0 4711 8192                                   GPU, pid, MiB
    health all told 1                                     or health 0 rows_pending 1: see tests/fake/nvml_health.c

Of a GPU also: minor= memory=(GiB) numa_id= mig=on ecc=off compute=default|prohibited|exclusive persistence=off
fabric=completed|started|stopped fabric_status= cc=9.0 uuid= node= (else its host bridge's; -1: not told) device=no (no node in /dev)."""
import os
import re
import shlex
import sys

CLASSES = {"bridge": 0x060400, "gpu": 0x030200, "nvswitch": 0x068000, "nic": 0x020000, "nvme": 0x010802, "other": 0x088000}
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
P2P = ["OK", "CNS", "GNS", "TNS", "DR", "NS", "U"]  # in the order of NVML's numbers
HOST_BRIDGE, NODE, SYSTEM, INTERNAL, SINGLE, MULTIPLE = 30, 40, 50, 0, 10, 20


def ranges(cpus):
    """[0, 1, 2, 5] as "0-2,5"."""
    out = []
    for cpu in sorted(cpus):
        if out and out[-1][1] == cpu - 1:
            out[-1][1] = cpu
        else:
            out.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in out)


def numbers(words):
    found = []
    for word in words:
        a, _, b = word.partition("-")
        found += range(int(a), int(b or a) + 1)
    return found


class Device:
    def __init__(self, bdf, kind, keys, parent, node):
        self.bdf, self.kind, self.keys, self.path, self.node = bdf, kind, keys, parent + "/" + bdf, int(keys.get("node", node))

    def get(self, key, default=None):
        return self.keys.get(key, default)


class Machine:
    """What a description says."""

    def __init__(self, path):
        self.vendor, self.cpu_keys, self.threads = "GenuineIntel", {}, 1
        self.cores = []  # (package, node, l3) of each
        self.nodes = {}  # id: memory in GiB
        self.packages = 0
        self.offline, self.allowed, self.driver, self.driver_keys = [], None, None, {}
        self.devices, self.lines = [], []
        self.parents = []  # (indentation, path, node)
        l3 = 0
        for line in open(path, encoding="utf-8"):
            words = shlex.split(line, comments=True)
            if not words:
                continue
            indent = len(line) - len(line.lstrip())
            keys = dict(word.split("=", 1) for word in words if "=" in word)
            plain = [word for word in words if "=" not in word]
            word = plain[0]
            if word == "cpu":
                self.vendor, self.cpu_keys, self.threads = plain[1], keys, int(keys.get("threads", 1))
            elif word == "package":
                self.packages += 1
            elif word == "node":
                node = int(keys.get("id", len(self.nodes)))
                self.nodes[node] = int(keys.get("memory", 64))
            elif word == "l3":
                for _ in range(int(keys.get("count", 1))):
                    self.cores += [(self.packages - 1, node, l3)] * int(keys["cores"])
                    l3 += 1
            elif word == "offline":
                self.offline = numbers(plain[1:])
            elif word == "allowed":
                self.allowed = numbers(plain[1:])
            elif word == "driver":
                self.driver, self.driver_keys = plain[1], keys
            elif word == "root":
                self.parents = [(-1, f"/sys/devices/pci{plain[1]}", keys.get("node", "-1"))]
            elif re.fullmatch(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", word):
                while self.parents[-1][0] >= indent:
                    self.parents.pop()
                device = Device(word, plain[1], keys, self.parents[-1][1], self.parents[-1][2])
                self.devices.append(device)
                self.parents.append((indent, device.path, self.parents[-1][2]))
            else:
                self.lines.append((plain, keys))
        self.gpus = sorted((d for d in self.devices if d.kind == "gpu"), key=lambda d: d.bdf)
        for i, gpu in enumerate(self.gpus):
            gpu.uuid = gpu.get("uuid", f"GPU-{0x5eed0000 + i:08x}-0000-4000-8000-{i:012x}")
            gpu.minor = int(gpu.get("minor", i))

    def cpus(self):
        """cpu: index of its core, those that are on."""
        n, found = len(self.cores), {}
        for core in range(n):
            for thread in range(self.threads):
                cpu = core * self.threads + thread if self.cpu_keys.get("siblings") == "adjacent" else thread * n + core
                found[cpu] = core
        return found

    def online(self):
        return {cpu: core for cpu, core in self.cpus().items() if cpu not in self.offline}

    def cpus_of_node(self, node):
        return [cpu for cpu, core in self.online().items() if self.cores[core][1] == node]

    def local_cpus(self, device):
        cpus = self.cpus_of_node(device.node)
        return cpus if cpus or device.node >= 0 else list(self.online())

    def level(self, a, b):
        """What nvmlDeviceGetTopologyCommonAncestor tells of two devices."""
        x, y = (d.path.split("/")[3:] for d in (a, b))
        if x[0] != y[0]:
            return NODE if a.node == b.node else SYSTEM
        same = 0
        while same < min(len(x), len(y)) and x[same] == y[same]:
            same += 1
        if same == 1:
            return HOST_BRIDGE
        return SINGLE if same >= max(len(x), len(y)) - 2 else MULTIPLE


class Tree:
    """Files below a root."""

    def __init__(self, root):
        self.root, self.made = root, set()

    def make_parent(self, path):
        parent = os.path.dirname(self.root + path)
        if parent not in self.made:
            os.makedirs(parent, exist_ok=True)
            self.made.add(parent)

    def put(self, path, text):
        self.make_parent(path)
        fd = os.open(self.root + path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, f"{text}\n".encode())
        os.close(fd)

    def link(self, path, target):
        self.make_parent(path)
        os.symlink(os.path.relpath(target, os.path.dirname(path)), self.root + path)


def put_cpus(m, tree):
    base, online = "/sys/devices/system/cpu", m.online()
    tree.put(f"{base}/possible", ranges(m.cpus()))
    tree.put(f"{base}/present", ranges(m.cpus()))
    tree.put(f"{base}/online", ranges(online))
    tree.put(f"{base}/offline", ranges(m.offline))
    groups = {}
    for cpu, core in online.items():
        package, node, l3 = m.cores[core]
        for group in (("core", core), ("package", package), ("l3", l3)):
            groups.setdefault(group, []).append(cpu)
    for cpu, core in m.cpus().items():
        here = f"{base}/cpu{cpu}"
        if cpu:
            tree.put(f"{here}/online", int(cpu in online))
        if cpu not in online:
            continue
        package, _, l3 = m.cores[core]
        tree.put(f"{here}/topology/physical_package_id", package)
        tree.put(f"{here}/topology/core_id", sum(c[0] == package for c in m.cores[:core]))
        for name, group in ("core_cpus", ("core", core)), ("thread_siblings", ("core", core)), ("package_cpus", ("package", package)):
            tree.put(f"{here}/topology/{name}_list", ranges(groups[group]))
        for name, value in ("level", 3), ("type", "Unified"), ("shared_cpu_list", ranges(groups["l3", l3])):
            tree.put(f"{here}/cache/index3/{name}", value)
    allowed = ranges(m.allowed if m.allowed is not None else online)
    tree.put("/sys/fs/cgroup/cpuset.cpus.effective", allowed)
    tree.put("/proc/self/status", f"Name:\tjob\nCpus_allowed_list:\t{allowed}")
    name = m.cpu_keys.get("name", "some CPU")
    text = [f"processor\t: {cpu}\nvendor_id\t: {m.vendor}\ncpu family\t: {m.cpu_keys.get('family', 6)}\n"
            f"model\t\t: {m.cpu_keys.get('model', 0)}\nmodel name\t: {name}\n" for cpu in sorted(online)]
    tree.put("/proc/cpuinfo", "\n".join(text))


def put_nodes(m, tree):
    base = "/sys/devices/system/node"
    package = {node: p for p, node, _ in m.cores}
    with_cpus = [node for node in m.nodes if m.cpus_of_node(node)]
    tree.put(f"{base}/possible", ranges(m.nodes))
    tree.put(f"{base}/online", ranges(m.nodes))
    tree.put(f"{base}/has_cpu", ranges(with_cpus))
    tree.put(f"{base}/has_memory", ranges(node for node, memory in m.nodes.items() if memory))
    tree.put(f"{base}/has_normal_memory", ranges(node for node, memory in m.nodes.items() if memory))
    for node, memory in m.nodes.items():
        here = f"{base}/node{node}"
        distance = lambda other: 10 if other == node else 80 if not {node, other} <= set(package) else 12 if package[node] == package[other] else 32
        tree.put(f"{here}/cpulist", ranges(m.cpus_of_node(node)))
        tree.put(f"{here}/meminfo", f"Node {node} MemTotal:       {memory << 20} kB\nNode {node} MemFree:        {memory << 19} kB")
        tree.put(f"{here}/distance", " ".join(str(distance(other)) for other in sorted(m.nodes)))


def put_nic(tree, d):
    if d.get("ib"):
        here = f"{d.path}/infiniband/{d.get('ib')}"
        up = d.get("state", "active") == "active"
        tree.put(f"{here}/ports/1/rate", f"{d.get('rate', '100')} Gb/sec (4X NDR)")
        tree.put(f"{here}/ports/1/state", "4: ACTIVE" if up else "1: DOWN")
        tree.put(f"{here}/ports/1/link_layer", d.get("link", "InfiniBand"))
        tree.link(f"{here}/device", d.path)
        tree.link(f"/sys/class/infiniband/{d.get('ib')}", here)
    if d.get("net"):
        here = f"{d.path}/net/{d.get('net')}"
        tree.put(f"{here}/speed", int(d.get("rate", "-1").split(".")[0]) * 1000 if d.get("rate") else -1)
        tree.put(f"{here}/operstate", d.get("operstate", "up"))
        tree.link(f"{here}/device", d.path)
        tree.link(f"/sys/class/net/{d.get('net')}", here)


def put_pci(m, tree):
    vendors = {"gpu": 0x1002 if m.driver == "amd" else 0x10de, "nvswitch": 0x10de, "bridge": 0x1000, "nic": 0x15b3}
    for d in m.devices:
        device_class = 0x120000 if d.kind == "gpu" and m.driver == "amd" else CLASSES[d.kind]
        if d.get("ib") and d.get("link", "InfiniBand") == "InfiniBand":
            device_class = 0x020700
        tree.put(f"{d.path}/class", f"0x{device_class:06x}")
        for key, name, default in ("vendor", "vendor", vendors.get(d.kind, 0x8086)), ("id", "device", 0x1234), ("subvendor", "subsystem_vendor", 0), ("subid", "subsystem_device", 0):
            tree.put(f"{d.path}/{name}", f"0x{int(str(d.get(key, hex(default))), 16):04x}")
        tree.put(f"{d.path}/numa_node", d.node)
        tree.put(f"{d.path}/local_cpulist", ranges(m.local_cpus(d)))
        gen, width = int(d.get("gen", 5)), int(d.get("width", 16))
        for when, g, w in ("current", gen, width), ("max", int(d.get("max_gen", gen)), int(d.get("max_width", width))):
            tree.put(f"{d.path}/{when}_link_speed", f"{SPEEDS[g]} GT/s PCIe" if g else "Unknown")
            tree.put(f"{d.path}/{when}_link_width", w)
        tree.link(f"/sys/bus/pci/devices/{d.bdf}", d.path)
        put_nic(tree, d)


def put_nvidia(m, tree):
    tree.put("/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {m.driver_keys.get('version', '580.159.04')}  Release Build")
    for i, gpu in enumerate(m.gpus):
        tree.put(f"/proc/driver/nvidia/gpus/{gpu.bdf}/information",
                 f"Model: \t\t {gpu.get('name', 'NVIDIA GPU')}\nIRQ:   \t\t {40 + i}\nGPU UUID: \t {gpu.uuid}\nBus Type: \t PCIe\n"
                 f"Bus Location: \t {gpu.bdf}\nDevice Minor: \t {gpu.minor}\nGPU Excluded:\t No")
        if gpu.get("device") != "no":
            tree.put(f"/dev/nvidia{gpu.minor}", "")
    tree.put("/dev/nvidiactl", "")


def put_amd(m, tree):
    base = "/sys/class/kfd/kfd/topology/nodes"
    cpu_nodes = [node for node in m.nodes if m.cpus_of_node(node)]
    links = {}
    for plain, keys in m.lines:
        if plain[0] == "xgmi":
            pairs = [(a, b) for a in range(len(m.gpus)) for b in range(a)] if plain[1] == "all" else [(int(plain[1]), int(plain[2]))]
            for a, b in pairs:
                links[a, b] = links[b, a] = int(keys.get("speed", 64000))
    for i in range(len(cpu_nodes)):
        tree.put(f"{base}/{i}/gpu_id", 0)
        tree.put(f"{base}/{i}/properties", "cpu_cores_count 96\nsimd_count 0")
    for i, gpu in enumerate(m.gpus):
        here, (domain, bus, device, function) = f"{base}/{len(cpu_nodes) + i}", (int(x, 16) for x in re.split("[:.]", gpu.bdf))
        tree.put(f"{here}/gpu_id", 1000 + i)
        tree.put(f"{here}/name", gpu.get("code", ""))
        tree.put(f"{here}/properties", f"simd_count 1216\ngfx_target_version {gpu.get('gfx', 90402)}\nvendor_id 4098\ndevice_id 29857\n"
                 f"location_id {bus << 8 | device << 3 | function}\ndomain {domain}\ndrm_render_minor {128 + i}\nunique_id {0x5eed0000 + i}")
        tree.put(f"{gpu.path}/product_name", gpu.get("name", ""))
        others = [(b, links[i, b]) for b in range(len(m.gpus)) if (i, b) in links]
        tree.put(f"{here}/io_links/0/properties", f"type 2\nnode_from {len(cpu_nodes) + i}\nnode_to {max(gpu.node, 0)}\nweight 20\nmin_bandwidth 312\nmax_bandwidth 64000")
        for k, (b, speed) in enumerate(others, 1):
            tree.put(f"{here}/io_links/{k}/properties", f"type 11\nnode_from {len(cpu_nodes) + i}\nnode_to {len(cpu_nodes) + b}\nweight 15\nmin_bandwidth {speed}\nmax_bandwidth {speed}")
        tree.put(f"/dev/dri/renderD{128 + i}", "")


def p2p_lines(m, gpus):
    status = {}
    for plain, _ in m.lines:
        if plain[0] != "p2p":
            continue
        kinds = "rwnap" if plain[1] == "*" else plain[1]
        some = [range(gpus) if word == "*" else [int(word)] for word in plain[2:4]]
        for kind in kinds:
            for a in some[0]:
                for b in some[1]:
                    status[kind, a, b] = status[kind, b, a] = P2P.index(plain[4])
    return [f"p2p {'rwnap'.index(k)} {a} {b} {s}" for (k, a, b), s in sorted(status.items())]


def nvml_text(m):
    """One line a fact, as tests/fake/nvml.c reads them."""
    out, links = [], [[] for _ in m.gpus]
    version, speed = 0, 0
    for plain, keys in m.lines:
        if plain[0] != "nvlink":
            continue
        version, speed = int(keys.get("version", version or 3)), int(keys.get("speed", speed or 25000))
        if plain[1] == "all":
            switches = [d.bdf for d in m.devices if d.kind == "nvswitch"] or ["fffffff:ff:ff.0"]
            for own in links:
                own += [(2, switches[k % len(switches)]) for k in range(int(plain[2]))]
        elif plain[2] == "down":
            own = links[int(plain[1])]
            own[len(own) - int(plain[3]):] = [(-1, "-")] * int(plain[3])
        else:
            a, b, n = map(int, plain[1:4])
            links[a] += [(0, m.gpus[b].bdf)] * n
            links[b] += [(0, m.gpus[a].bdf)] * n
    modes = {"default": 0, "prohibited": 2, "exclusive": 3}
    fabric = {None: 0, "stopped": 1, "started": 2, "completed": 3}
    for i, g in enumerate(m.gpus):
        width = 8 * (max(m.cpus(), default=0) // 64 + 1)
        mask = sum(1 << cpu for cpu in m.local_cpus(g))
        node = g.node if g.node >= 0 else 0
        out.append(f"gpu {i} {g.bdf} {g.uuid} {g.minor} {g.get('numa_id', -1)} {int(g.get('mig') == 'on')} {int(g.get('ecc') != 'off')} "
                   f"{modes[g.get('compute', 'default')]} {int(g.get('persistence') != 'off')} {fabric[g.get('fabric')]} {g.get('fabric_status', 0)} "
                   f"{g.get('cc', '9.0').replace('.', ' ')} {version} {speed} {g.get('memory', 80)} {node} {mask:0{2 * width}x} {g.get('name', 'NVIDIA GPU')}")
        out += [f"link {i} {k} {kind} {remote}" for k, (kind, remote) in enumerate(links[i])]
        out += [f"level {i} {j} {m.level(g, other)}" for j, other in enumerate(m.gpus) if j != i]
    out += p2p_lines(m, len(m.gpus))
    out += [f"process {p[1]} {p[2]} {int(p[3]) << 20}" for p, _ in m.lines if p[0] == "process"]
    for plain, _ in m.lines:
        if plain[0] == "health":
            out += [f"health {i} {plain[2]} {plain[3]}" for i in (range(len(m.gpus)) if plain[1] == "all" else [plain[1]])]
    return "\n".join(out)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: mkroot.py FILE.machine ROOT")
    m, tree = Machine(sys.argv[1]), Tree(sys.argv[2].rstrip("/"))
    put_cpus(m, tree)
    put_nodes(m, tree)
    put_pci(m, tree)
    if m.driver == "nvidia":
        put_nvidia(m, tree)
        if m.driver_keys.get("nvml") != "no":
            tree.put("/nvml", nvml_text(m))
    if m.driver == "amd":
        put_amd(m, tree)


main()
