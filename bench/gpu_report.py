"""What bench_gpu.py found, as tables and as a picture. Takes the content of gpu.json."""
from collections import defaultdict

READERS = ["cogpu", "nvTIFF", "xarray-spatial", "processor + upload"]
COLOURS = {"cogpu": "#1a7f4b", "nvTIFF": "#c9a227", "xarray-spatial": "#8d99ae", "processor + upload": "#b5c9bd"}


def by_file(outcome):
    """{file: {"decode": {who: line}, "from_file": {who: found}, "from_memory": ..., ...}}, in their order."""
    files = defaultdict(lambda: {"decode": {}, "from_file": {}, "from_memory": {}})
    for line in outcome["decode"]:
        files[line["file"]]["decode"][line["who"]] = line
    for line in outcome["reads"]:
        files[line["file"]] |= line
    return files


def short(name):
    return name.removeprefix("gpu-").removesuffix(".tif")


def title(name, side):
    """float32-deflate-p3-s64-10000 in words; the side only where it is another than the run's."""
    raster, codec, *rest = short(name).split("-")
    words = [raster, codec.upper() if codec == "lzw" else codec]
    for part in rest:
        if part.startswith("s") and part[1:].isdigit():
            words.append(f"strips of {part[1:]}")
        elif part in ("256", "512"):
            words.append(f"{part}²")
        elif part != str(side):
            words.append(f"({part} x {part})" if part.isdigit() else part)
    return " ".join(words)


def number(found, key="ms", digits=1):
    if "wrong" in found and found["wrong"]:
        return "WRONG"
    if "failed" in found:
        return "failed"
    return f"{found[key]:.{digits}f}" if key in found else "-"


def summary(line):
    """One line for who watches."""
    if "failed" in line:
        return line["failed"]
    parts = [f"{job}: " + ", ".join(f"{who} {number(found, digits=2)}" for who, found in line[f"from_{job}"].items())
             for job in ("file", "memory")]
    return "; ".join(parts) + " ms"


def markdown(header, lines):
    cells = [header, ["---"] + ["---:"] * (len(header) - 1)] + lines
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in cells)


def times_as_fast(found):
    """Than the fastest peer that read the file right, as text."""
    peers = [found[who]["ms"] for who in ("nvTIFF", "xarray-spatial")
             if "ms" in found.get(who, {}) and not found[who]["wrong"]]
    return f"{min(peers) / found['cogpu']['ms']:.1f}" if peers and "ms" in found.get("cogpu", {}) else "-"


def main_table(files, outcome):
    header = ["file", "stored MB", "**decode**, GB/s", "nvCOMP", "**memory to raster**, ms", "nvTIFF",
              "**file to raster**, ms", "nvTIFF", "xarray-spatial", "x best peer",
              f"{outcome['processors']} processors + upload", "the wire"]
    lines = []
    for name, found in files.items():
        decode, file, memory = found["decode"], found["from_file"], found["from_memory"]
        stored = found.get("file_bytes") or decode.get("cogpu", {}).get("stored_bytes", 0)
        lines.append([
            short(name), f"{stored / 1e6:.0f}", number(decode.get("cogpu", {}), "gb_s"),
            number(decode.get("nvcomp", {}), "gb_s"), number(memory.get("cogpu", {})),
            number(memory.get("nvTIFF", {})), number(file.get("cogpu", {})),
            *(number(file.get(who, {})) for who in READERS[1:3]), times_as_fast(file),
            number(file.get(READERS[3], {})), number(memory.get("wire", {}))])
    return markdown(header, lines)


def decoder_table(files):
    """What of decode alone the main table has no room for."""
    lines = [[short(name), our["blocks"], f"{our['decoded_bytes'] / 1e6:.1f}", f"{our['ms']:.3f}",
              f"{our['scratch_bytes'] / 1e6:.1f}", our["refused"], our["wrong"]]
             for name, found in files.items() if "ms" in (our := found["decode"].get("cogpu", {}))]
    return markdown(["file", "blocks", "decoded MB", "decode ms", "scratch MB", "blocks refused", "blocks wrong"],
                    lines)


def kernel_table(files):
    lines = [[short(name), kernel, spent["launches"], f"{spent['ms']:.3f}"]
             for name, found in files.items()
             for kernel, spent in found["decode"].get("cogpu", {}).get("kernels", {}).items()]
    return "\n" + markdown(["file", "kernel", "launches", "ms, alone"], lines) if lines else ""


def remarks(outcome, files):
    """Peers that are not there, files that one refuses or reads wrong, what one says beside."""
    found = [f"{who}: {why}" for who, why in outcome["missing"].items()]
    same = defaultdict(list)
    for name, line in files.items():
        if "failed" in line:
            same["cogpu and its peers", line["failed"]].append(short(name))
        for who, one in line["decode"].items():
            if "failed" in one or one["wrong"]:
                same[who, one.get("failed", "WRONG BYTES")].append(short(name))
        for job in ("from_file", "from_memory"):
            for who, one in line[job].items():
                why = "WRONG PIXELS" if one.get("wrong") else one.get("refused") or one.get("note")
                if why and short(name) not in same[who, why]:
                    same[who, why].append(short(name))
    found += [f"{who}, {', '.join(names)}: {why}" for (who, why), names in same.items() if names]
    return "\nRemarks:\n\n" + "".join(f"- {line}\n" for line in found) if found else ""


def report(outcome):
    files = by_file(outcome)
    versions = ", ".join(f"{who} {version}" for who, version in outcome["versions"].items() if who in READERS[:3])
    text = (f"{outcome['machine']}; {outcome['processors']} processors; {outcome['side']} x {outcome['side']}; medians "
            f"of up to {outcome['repeats']}; files by {outcome['written_by']}; {versions}.\n\n")
    text += main_table(files, outcome)
    if outcome["decode"]:
        text += "\n" + decoder_table(files)
    return text + kernel_table(files) + remarks(outcome, files)


def has_failed(outcome):
    """cogpu did not do something, or did it wrong."""
    ours = [line for line in outcome["decode"] if line["who"] == "cogpu"]
    for line in outcome["reads"]:
        ours += [line] if "failed" in line else [
            line[job][who] for job in ("from_file", "from_memory") for who in (READERS[0], READERS[3])
            if who in line[job]]
    return any("failed" in line or "refused" in line and "ms" not in line or line["wrong"] for line in ours)


# ---- the picture -------------------------------------------------------------------------------

def draw(outcome, path):
    """File to raster, a group of bars for each file, with the wire as a mark. False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    lines = [line for line in outcome["reads"] if "ms" in line.get("from_file", {}).get("cogpu", {})]
    who = [name for name in READERS if any("ms" in line["from_file"].get(name, {}) for line in lines)]
    if not lines:
        return False
    thick, gap, y, middles = 1.0, 1.0, 0.0, []
    figure, axes = pyplot.subplots(figsize=(10, 1.6 + 0.17 * len(lines) * (len(who) + 1)))
    for line in lines:
        there = [name for name in who if "ms" in line["from_file"].get(name, {})]
        for place, name in enumerate(there):
            ms = line["from_file"][name]["ms"]
            axes.barh(y + place * thick, ms, thick * 0.92, color=COLOURS[name])
            axes.text(ms * 1.03, y + place * thick, f"{ms:.1f}" if ms < 100 else f"{ms:.0f}", va="center",
                      fontsize=7, fontweight="bold" if name == "cogpu" else "normal", color="#222222")
        if "ms" in (wire := line["from_memory"].get("wire", {})):
            axes.plot([wire["ms"]] * 2, [y - thick / 2, y + (len(there) - 0.5) * thick], color="#c1121f", lw=1.4)
        middles.append(y + (len(there) - 1) * thick / 2)
        y += len(there) * thick + gap
    finish_axes(axes, outcome, lines, middles, who)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return True


def finish_axes(axes, outcome, lines, middles, who):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    axes.set_xscale("log")
    axes.set_yticks(middles, [title(line["file"], outcome["side"]) for line in lines], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.grid(axis="x", which="major", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda ms, _: f"{ms:g} ms")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    names = {"processor + upload": f"cogpu on {outcome['processors']} processors, then upload"}
    marks = [Patch(color=COLOURS[name], label=names.get(name, name)) for name in who]
    marks.append(Line2D([], [], color="#c1121f", lw=1.4, label="the wire: copying the stored bytes alone"))
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, frameon=False)
    axes.set_title(f"File in the page cache to raster in GPU memory, {outcome['side']} x {outcome['side']}; "
                   f"{outcome['machine'].split(',')[0]}; less is better", fontsize=10, loc="left")
