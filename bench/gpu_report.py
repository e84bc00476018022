"""What bench_gpu.py found, as tables and as a picture. Takes the content of gpu.json."""
from collections import defaultdict

READERS = ["cogpu", "nvTIFF", "xarray-spatial", "processor + upload"]
COLOURS = {"cogpu": "#12803f", "nvTIFF": "#d29a00", "xarray-spatial": "#5b7aa8", "processor + upload": "#a9c7b3"}
WIRE_COLOUR = "#c1121f"


def by_file(outcome):
    """{file: {"decode": {who: line}, "from_file": {who: found}, "from_memory": ..., ...}}."""
    files = defaultdict(lambda: {"decode": {}, "from_file": {}, "from_memory": {}})
    for line in outcome["reads"]:
        files[line["file"]] |= line
    for line in outcome["decode"]:
        files[line["file"]]["decode"][line["who"]] = line
    return files


def short(name):
    return name.removeprefix("gpu-").removeprefix("gdal-").removesuffix(".tif")


def title(name, side):
    """float32-deflate-p3-s64-10000 in words: tiles of 512 go without saying, and so does the run's side."""
    *way, block, own_side = short(name).split("-")
    text = " ".join("LZW" if part == "lzw" else part for part in way)
    if block != "512":
        text += f", strips of {block[1:]}" if block.startswith("s") else f", tiles of {block}"
    return text if own_side == str(side) else f"{text}, {own_side} x {own_side}"


def number(found, key="ms", digits=1):
    if "wrong" in found and found["wrong"]:
        return "WRONG"
    if "failed" in found:
        return "failed"
    return f"{found[key]:.{digits}f}" if key in found else "-"


def summary(line):
    """One line for who watches, of a file that was read or written."""
    if "failed" in line:
        return line["failed"]
    jobs = [job for job in line if job.startswith(("from_", "to_"))]
    parts = [f"{job.replace('_', ' ')}: " + ", ".join(f"{who} {number(found, digits=2)}" for who, found in line[job].items())
             for job in jobs]
    return "; ".join(parts) + " ms"


def step_summary(line):
    """The same of a step alone."""
    what = " ".join(str(line[key]) for key in ("step", "codec", "level", "predictor") if key in line)
    size = f", {line['ratio']:.3f} x {line['beside']}" if line.get("ratio") else ""
    return f"{line['who']} {what} {line['gb_s']} GB/s{size}, {line['wrong']} wrong"


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
              f"{outcome['processors']} processors + upload", "a bare ring", "the wire"]
    lines = []
    for name, found in files.items():
        decode, file, memory = found["decode"], found["from_file"], found["from_memory"]
        stored = found.get("file_bytes") or decode.get("cogpu", {}).get("stored_bytes", 0)
        lines.append([
            short(name), f"{stored / 1e6:.0f}", number(decode.get("cogpu", {}), "gb_s"),
            number(decode.get("nvcomp", {}), "gb_s"), number(memory.get("cogpu", {})),
            number(memory.get("nvTIFF", {})), number(file.get("cogpu", {})),
            *(number(file.get(who, {})) for who in READERS[1:3]), times_as_fast(file),
            number(file.get(READERS[3], {})), number(file.get("ring", {})), number(memory.get("wire", {}))])
    return markdown(header, lines)


def decoder_table(files):
    """What of decode alone the main table has no room for."""
    lines = [[short(name), our["blocks"], f"{our['decoded_bytes'] / 1e6:.1f}", f"{our['ms']:.3f}",
              f"{our['scratch_bytes'] / 1e6:.1f}", our["refused"], our["wrong"]]
             for name, found in files.items() if "ms" in (our := found["decode"].get("cogpu", {}))]
    return markdown(["file", "blocks", "decoded MB", "decode ms", "scratch MB", "blocks refused", "blocks wrong"],
                    lines)


def kernel_table(lines):
    """Of steps alone."""
    cells = [[short(line["file"]), *(line.get(key, "-") for key in ("codec", "level", "predictor")), kernel,
              spent["launches"], f"{spent['ms']:.3f}"]
             for line in lines for kernel, spent in line.get("kernels", {}).items()]
    header = ["file", "codec", "level", "predictor", "kernel", "launches", "ms, alone"]
    return "\n" + markdown(header, cells) if cells else ""


# ---- writing -----------------------------------------------------------------------------------

def encoder_table(lines):
    """A row for each raster, codec, level and predictor; nvCOMP's algorithms side by side, as speed and size."""
    steps = [line for line in lines if "ms" in line]
    cuts = {(line["file"], line["predictor"]): line for line in steps if line["step"] == "cut"}
    key = lambda line: tuple(line[part] for part in ("file", "codec", "level", "predictor"))
    packs = {key(line): line for line in steps if line["step"] == "pack"}
    cells = []
    for our in (line for line in steps if line["step"] == "encode" and line["who"] == "cogpu"):
        peers = [line for line in steps if line["who"] == "nvcomp" and line["beside"] == our["beside"] and
                 (line["file"], line["codec"], line["predictor"]) == (our["file"], our["codec"], our["predictor"])]
        cells.append([
            " ".join([short(our["file"]).split("-")[0], our["codec"], *[str(our["level"])] * (our["level"] > 0),
                      f"p{our['predictor']}"]), number(our, "gb_s"),
            f"{our['ratio']:.3f} x {our['beside']}",
            ", ".join(f"{number(peer, 'gb_s')} at {peer['ratio']:.3f}" for peer in sorted(peers, key=lambda p: p["level"]))
            or "-", number(cuts[our["file"], our["predictor"]], "gb_s", 0), number(packs.get(key(our), {}), "gb_s", 0),
            f"{our['scratch_bytes'] / 1e6:.0f}", our["unsteady"]])
    return "\nEncode alone, GB/s of decoded bytes:\n\n" + markdown(
        ["raster", "**encode**", "size", "nvCOMP, by algorithm", "cut", "pack", "scratch MB", "unsteady blocks"], cells)


def write_table(lines, side):
    cells = []
    for line in (line for line in lines if "failed" not in line):
        memory, disk, shm = line["to_memory"], line["to_disk"], line.get("to_memory_disk", {})
        our, theirs = disk.get("cogpu", {}), disk.get("xarray-spatial", {})
        cells.append([
            line["file"].removeprefix("write-"), number(memory.get("cogpu", {})), number(line["to_buffer"].get("cogpu", {})),
            number(memory.get("wire", {})), number(our), number(disk.get("bare", {})), number(disk.get("bare, flushed", {})),
            number(theirs), number(shm.get("cogpu", {})), number(shm.get("bare", {})),
            *(f"{one['bytes'] / 1e6:.1f}" if "bytes" in one else "-" for one in (our, theirs))])
    return f"\nRaster of {side} x {side} to a file, ms:\n\n" + markdown(
        ["file", "**to memory**", "to a buffer", "the wire down", "**to the disk**", "bare write", "bare write, flushed",
         "xarray-spatial", "**to a disk in memory**", "bare write", "file, MB", "xarray-spatial's, MB"], cells)


def peak_table(lines):
    cells = [[line.get("who", line["file"]), f"{line.get('allowed', 0) >> 20} MiB" if line.get("allowed") else "default",
              number(line), *(f"{line[key] / 1e6:.1f}" if key in line else "-" for key in ("device_bytes", "host_bytes"))]
             for line in lines]
    return "\nA COG with overviews, cogpu by swaths of 512 rows: memory beyond the swath, or the raster:\n\n" + markdown(
        ["who", "device memory allowed", "ms", "device, MB", "host, MB"], cells)


def write_report(outcome):
    """What a run found of writing; nothing where it did not write."""
    text = encoder_table(outcome["encode"]) if outcome.get("encode") else ""
    if outcome.get("writes"):
        text += write_table(outcome["writes"], outcome["write_side"])
    return text + (peak_table(outcome["peaks"]) if outcome.get("peaks") else "")


def remarks(outcome, files):
    """Peers that are not there, files that one refuses or gets wrong, what one says beside."""
    found = [f"{who}: {why}" for who, why in outcome["missing"].items()]
    same = defaultdict(list)
    for name, line in [*files.items(), *((line["file"], line) for line in outcome.get("writes", []))]:
        if "failed" in line:
            same["cogpu and its peers", line["failed"]].append(short(name))
        for who, one in line.get("decode", {}).items():
            if "failed" in one or one["wrong"]:
                same[who, one.get("failed", "WRONG BYTES")].append(short(name))
        for job in (job for job in line if job.startswith(("from_", "to_"))):
            for who, one in line[job].items():
                why = "WRONG PIXELS" if one.get("wrong") else one.get("refused") or one.get("note")
                if why and short(name) not in same[who, why]:
                    same[who, why].append(short(name))
    for line in outcome.get("encode", []) + outcome.get("peaks", []):
        why = line.get("failed") or line.get("refused") or "WRONG" * bool(line["wrong"])
        if why and short(line["file"]) not in same[line.get("who", ""), why]:
            same[line.get("who", ""), why].append(short(line["file"]))
    found += [f"{who}, {', '.join(names)}: {why}" for (who, why), names in same.items() if names]
    return "\nRemarks:\n\n" + "".join(f"- {line}\n" for line in found) if found else ""


def report(outcome):
    files = by_file(outcome)
    versions = ", ".join(f"{who} {version}" for who, version in outcome["versions"].items() if who in READERS[:3])
    text = (f"{outcome['machine']}; {outcome['processors']} processors; {outcome['side']} x {outcome['side']}; medians "
            f"of up to {outcome['repeats']}; files by {outcome['written_by']}; {versions}.\n")
    if files:
        text += "\n" + main_table(files, outcome)
    if outcome["decode"]:
        text += "\n" + decoder_table(files)
    return (text + write_report(outcome) + kernel_table(outcome["decode"] + outcome.get("encode", [])) +
            remarks(outcome, files))


def has_failed(outcome):
    """cogpu did not do something, or did it wrong."""
    ours = [line for part in ("decode", "encode", "peaks") for line in outcome.get(part, [])
            if line.get("who", "cogpu") == "cogpu"]
    for line in outcome["reads"] + outcome.get("writes", []):
        ours += [line] if "failed" in line else [
            line[job][who] for job in line if job.startswith(("from_", "to_")) for who in (READERS[0], READERS[3])
            if who in line[job]]
    return any("failed" in line or "refused" in line and "ms" not in line or line["wrong"] or line.get("unsteady")
               for line in ours)


# ---- the picture -------------------------------------------------------------------------------

def drawn(outcome):
    """The lines that the picture shows: tiles, then strips, then the small raster; without tiles of 256, which
    are much like those of 512."""
    lines = [line for line in outcome["reads"] if "ms" in line.get("from_file", {}).get("cogpu", {})]
    return sorted((line for line in lines if "-256-" not in line["file"]),
                  key=lambda line: (not short(line["file"]).endswith(str(outcome["side"])), "-s64-" in line["file"]))


def draw(outcome, path):
    """File to raster: a row for each file, a dot for each reader, a mark for the wire. False without
    matplotlib, or anything to draw."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    lines = drawn(outcome)
    if not lines:
        return False
    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.36 * len(lines)))
    for y, line in enumerate(lines):
        draw_row(axes, y, line)
    finish_axes(axes, outcome, lines)
    add_head(figure, outcome, [name for name in READERS if any("ms" in line["from_file"].get(name, {}) for line in lines)])
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return True


def draw_row(axes, y, line):
    wire = line["from_memory"].get("wire", {}).get("ms")
    times = {name: line["from_file"][name]["ms"] for name in READERS if "ms" in line["from_file"].get(name, {})}
    axes.plot([wire or times["cogpu"], max(times.values())], [y, y], color="#dddddd", lw=1, zorder=1)
    for name, ms in times.items():
        axes.scatter(ms, y, s=60 if name == "cogpu" else 34, color=COLOURS[name], zorder=3)
        below = name == READERS[3]  # close to nvTIFF's in some rows
        axes.annotate(f"{ms:.1f}" if ms < 20 else f"{ms:.0f}", (ms, y), (0, -5 if below else 5), ha="center",
                      va="top" if below else "bottom", textcoords="offset points", fontsize=7,
                      fontweight="bold" if name == "cogpu" else "normal", color="#333333")
    if wire:
        axes.plot([wire, wire], [y - 0.32, y + 0.32], color=WIRE_COLOUR, lw=2, zorder=2)


def finish_axes(axes, outcome, lines):
    axes.set_xscale("log")
    axes.set_yticks(range(len(lines)), [title(line["file"], outcome["side"]) for line in lines], fontsize=8.5)
    axes.set_ylim(len(lines) - 0.4, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.grid(axis="x", which="major", color="#eeeeee", lw=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda ms, _: f"{ms:g} ms")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def add_head(figure, outcome, readers):
    """Title and legend, over the whole width."""
    from matplotlib.lines import Line2D
    names = {READERS[3]: f"cogpu on {outcome['processors']} processors, then upload"}
    marks = [Line2D([], [], color=WIRE_COLOUR, marker="|", ms=9, mew=2, ls="",
                    label="the wire: the stored bytes copied up, no more")]
    marks += [Line2D([], [], color=COLOURS[name], marker="o", ls="", label=names.get(name, name)) for name in readers]
    inch = 1 / figure.get_figheight()
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 * inch))
    figure.text(0.015, 1 - 0.27 * inch, f"File to raster in GPU memory: milliseconds, {outcome['side']:,} x "
                f"{outcome['side']:,} pixels in tiles of 512 ({outcome['machine'].split(',')[0]})", fontsize=11)
    figure.legend(handles=marks, loc="upper left", bbox_to_anchor=(0.01, 1 - 0.33 * inch), ncols=5, fontsize=8.5,
                  frameon=False, handletextpad=0.1, columnspacing=1.4, borderpad=0.2)
