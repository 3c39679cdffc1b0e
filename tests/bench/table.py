# SPDX-License-Identifier: MIT
"""The table of a README, from what run.py wrote as JSON."""
from measure import EXPONENT, short


def number(s, unit):
    """A median with its quartiles."""
    text = short(s["median"], unit)
    if s["q1"] != s["q3"]:
        text += f" ({short(s['q1'], '').strip()}–{short(s['q3'], '').strip()})"
    return text


def markdown(whole):
    where, peers = whole["machine"], whole["peers"]
    sized = [row for row in whole["rows"] if row["size"] is not None]
    lines = [
        f"{where['date']}, {where['cpu']}, {where['cores_allowed']} of {where['cores']} cores, {where['memory_mb']} MiB, Linux {where['kernel']}, "
        f"load {where['load']} before{', few rounds (--quick)' if whole['quick'] else ''}. "
        f"Peers: {'; '.join(f'{k} {v}' for k, v in peers.items() if v) or 'none'}. Medians (quartiles).", ""]
    lines += ["| what | launch | beside it | goal |", "|---|---|---|---|"]
    for name in dict.fromkeys(row["name"] for row in whole["rows"] if row["size"] is None and not row["name"].endswith(EXPONENT)):
        rows = [row for row in whole["rows"] if row["name"] == name]
        beside = "; ".join(f"{r['peer']} {number(r['peers'], r['unit'])}" + (f", {r['ratio']:.2g}x" if r["ratio"] else "")
                           for r in rows if r["peers"])
        mine = next((number(r["ours"], r["unit"]) for r in rows if r["ours"]), "-")
        judged = next((r for r in rows if r["goal"]), None)
        goal = judged["goal"] + (" **over**" if judged["verdict"] == "over" else "") if judged else ""
        lines.append(f"| {name} | {mine} | {beside} | {goal} |")
    if not sized:
        return "\n".join(lines)
    exponents = {row["name"]: row for row in whole["rows"] if row["name"].endswith(EXPONENT)}
    lines += ["", "| what grows | size: cost | exponent |", "|---|---|---|"]
    for kind in dict.fromkeys(row["name"].rpartition(", ")[0] for row in sized):
        cells = [f"{r['size']}: {short(r['ours']['median'], r['unit'])}" for r in sized if r["name"].rpartition(", ")[0] == kind]
        e = exponents.get(kind + EXPONENT)
        over = " **over**" if e and e["verdict"] == "over" else ""
        lines.append(f"| {kind} | {' · '.join(cells)} | {e['ours']['median']:.2f}{over} |" if e else f"| {kind} | {' · '.join(cells)} | |")
    return "\n".join(lines)
