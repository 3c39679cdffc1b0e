#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""This machine in the words of mkroot.py:   launch topo --format=json >T; record.py T >NAME.machine

What topo's JSON does not tell is read below LAUNCH_SYSROOT. A draft, to be looked over: for NVIDIA's GPUs; links of single
GPUs that are down, MIG, processes and a cpuset are left out."""
import collections
import json
import os
import re
import sys

ROOT = os.environ.get("LAUNCH_SYSROOT", "")


def read(path, otherwise=""):
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return otherwise


def size(cpus):
    return sum(int(b or a) - int(a) + 1 for a, b in re.findall(r"(\d+)(?:-(\d+))?", cpus))


def first(cpus):
    return int(re.match(r"\d+", cpus)[0])


def put_cpus(topo):
    info = dict(re.findall(r"^(vendor_id|model name|cpu family|model)\s*: (.*)$", read("/proc/cpuinfo"), re.M))
    here = "/sys/devices/system/cpu/cpu"
    threads = size(read(here + "0/topology/thread_siblings_list", "0"))
    print(f'cpu {info.get("vendor_id", "unknown")} name="{info.get("model name", topo["cpu"]["name"])}" family={info.get("cpu family", 6)} '
          f'model={info.get("model", 0)} threads={threads}')
    package = None
    for node in topo["nodes"]:
        if not node["cpus"]:
            print(f"node id={node['id']} memory={round(node['memory_bytes'] / 2**30)} cpus=none")
            continue
        if node["package"] != package:
            package = node["package"]
            print("package")
        print(f"node memory={round(node['memory_bytes'] / 2**30)}")
        caches = collections.Counter()
        for a, b in re.findall(r"(\d+)(?:-(\d+))?", node["cpus"]):
            for cpu in range(int(a), int(b or a) + 1):
                caches[read(f"{here}{cpu}/cache/index3/shared_cpu_list", node["cpus"])] += 1
        groups = [max(1, size(cpus) // threads) for cpus in sorted(caches, key=first)]
        for cores, count in collections.Counter(groups).items():
            print(f"l3 cores={cores}" + (f" count={count}" if count > 1 else ""))


def number(path):
    return read(path).removeprefix("0x")


def words(keys):
    return " ".join(f'{k}="{v}"' if " " in str(v) else f"{k}={v}" for k, v in keys.items() if v not in (None, ""))


def pcie(device):
    now, most = device["pcie"], device["pcie_max"]
    return {"gen": now["gen"] or 0, "width": now["width"] or 0, "max_gen": most["gen"], "max_width": most["width"] or 0}


def put_pci(topo):
    devices = {}
    for gpu in topo["gpus"]:
        here = f"/sys/bus/pci/devices/{gpu['pci']}"
        devices[gpu["path"]] = "gpu", {
            "name": gpu["name"], "id": number(f"{here}/device"), "subvendor": number(f"{here}/subsystem_vendor"),
            "subid": number(f"{here}/subsystem_device"), **pcie(gpu), "fabric": gpu["fabric"],
            "memory": gpu["memory_bytes"] and round(gpu["memory_bytes"] / 2**30), "numa_id": gpu["gpu_numa_id"], "cc": gpu["compute_capability"],
            "ecc": None if gpu["ecc"] else "off", "persistence": None if gpu["persistence"] else "off",
            "compute": gpu["compute_mode"].split()[0] if gpu["compute_mode"] != "default" else None}
    for nic in topo["nics"]:
        here = f"/sys/bus/pci/devices/{nic['pci']}"
        devices[nic["path"]] = "nic", {
            "vendor": number(f"{here}/vendor"), "id": number(f"{here}/device"), "ib": nic["name"] if nic["rdma"] else None,
            "net": nic["netdev"], "rate": nic["mbits_per_s"] and nic["mbits_per_s"] // 1000, "gen": 0, "width": 0}
    printed = set()
    for path in sorted(devices):
        root, *way = path.split("/")
        if root not in printed:
            printed.add(root)
            print(f"root {root.removeprefix('pci')} node={read(f'/sys/bus/pci/devices/{way[0]}/numa_node', '-1')}")
        for depth, bdf in enumerate(way):
            if (root, *way[:depth + 1]) in printed:
                continue
            printed.add((root, *way[:depth + 1]))
            kind, keys = devices.get("/".join([root, *way[:depth + 1]]), ("bridge", {}))
            print("  " * (depth + 1) + f"{bdf} {kind} {words(keys)}".rstrip())


def put_links(topo):
    gpus, matrix = topo["gpus"], topo["matrix"]
    links = [gpu["nvlink"] for gpu in gpus]
    keys = lambda link: f"version={link['version']} speed={link['mbytes_per_s']}"
    if links and all(link and link["switched"] for link in links):
        print(f"nvlink all {links[0]['up']} {keys(links[0])}")
    else:
        for i in range(len(gpus)):
            for j in range(i + 1, len(gpus)):
                if matrix[i][j].startswith("NV"):
                    print(f"nvlink {i} {j} {matrix[i][j][2:]} {keys(links[i])}")
    for kind, name in zip("rwnap", ("read", "write", "nvlink", "atomics", "pci")):
        for i, row in enumerate(topo["p2p"][name] if topo.get("p2p") else []):
            for j, cell in enumerate(row):
                if cell not in ("X", "OK"):
                    print(f"p2p {kind} {i} {j} {cell}")


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        topo = json.load(f)
    print(f"# Recorded: {len(topo['gpus'])} x {topo['gpus'][0]['name'] if topo['gpus'] else 'no GPU'}.")
    put_cpus(topo)
    if topo["driver"]:
        print(f"driver {topo['gpu_vendor']} version={topo['driver']}")
    put_pci(topo)
    put_links(topo)


main()
