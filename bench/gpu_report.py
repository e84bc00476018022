"""What bench_gpu.py found, as tables and as pictures. Takes the content of gpu.json.

As a program it prints the tables of docs/bench-gpu.md, of one run or of several that did a part each:

    gpu_report.py GPU.JSON ... [--docs]

--docs puts them into that page, with the pictures beside it.
"""
import argparse
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READERS = ["cogpu", "nvTIFF", "xarray-spatial", "CPU + upload"]
TO_BUFFER = "cogpu, to a buffer"
COLOURS = {"cogpu": "#12803f", "nvTIFF": "#d29a00", "xarray-spatial": "#5b7aa8", "CPU + upload": "#a9c7b3",
           TO_BUFFER: "#a9c7b3"}
MARK_COLOUR = "#c1121f"
LISTS = ("decode", "reads", "encode", "writes", "peaks")
PAGE_ROWS = ("float32-deflate-p3-256", "float32-zstd-p2-256", "float32-deflate-p3-s64")  # beside tiles of 512
PICTURE = "bench-gpu"  # in docs
NVCOMP_DEFAULT = 1  # of the algorithms of its deflate


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
    text = in_words(way)
    if block == f"s{own_side}":
        text += ", one strip"
    elif block != "512":
        text += f", strips of {block[1:]}" if block.startswith("s") else f", tiles of {block}"
    return text if own_side == str(side) else f"{text}, {own_side} x {own_side}"


def in_words(parts):
    return " ".join("LZW" if part == "lzw" else part for part in parts)


def write_title(line):
    """write-cog-float32-deflate-p3 in words, with the level."""
    kind, codec, *rest = line["file"].removeprefix("write-").removeprefix("cog-").removesuffix("-high").split("-")
    text = in_words([kind, codec, *[str(line["level"])] * (line["level"] > 0), *rest])
    return text + ", COG" * line["file"].startswith("write-cog-")


def number(found, key="ms", digits=None):
    """With a digit behind the point below 100, if not said otherwise; the emulator's times are 0."""
    if "wrong" in found and found["wrong"]:
        return "WRONG"
    if "failed" in found:
        return "failed"
    if not found.get(key):
        return "-"
    return f"{found[key]:.{int(found[key] < 100) if digits is None else digits}f}"


def megabytes(found, key="bytes"):
    return f"{found[key] / 1e6:.1f}" if key in found else "-"


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
              f"{outcome['cpu_cores']} CPU cores + upload", "raw upload", "H2D copy"]
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

def encoded(outcome):
    """{case: {"cogpu": line, "nvcomp": [a line for each algorithm], "pack": line, "compact": line}}."""
    cases = defaultdict(lambda: {"cogpu": {}, "nvcomp": [], "pack": {}, "compact": {}})
    for line in (line for line in outcome["encode"] if "ms" in line):
        if line["step"] != "encode":
            cases[line["case"]][line["step"]] = line
        elif line["who"] == "cogpu":
            cases[line["case"]]["cogpu"] = line
        else:
            cases[line["case"]]["nvcomp"].append(line)
    return cases


def size(line):
    return f"{line['ratio']:.3f} x {line['beside']}" if line.get("ratio") else "-"


def speed_and_size(line):
    ratio = f" ({line['ratio']:.3f})" if line.get("ratio") else ""
    return number(line, "gb_s") + ratio


def nvcomp_default(lines):
    """What nvCOMP does if it is not told otherwise; beside a high level the only algorithm that is measured."""
    return next((line for line in lines if line["level"] == NVCOMP_DEFAULT), lines[-1] if lines else {})


def encoder_table(outcome):
    cells = [[name.removeprefix("write-"), our.get("level", "-"), number(our, "gb_s"), size(our),
              ", ".join(f"{line['level']}: {speed_and_size(line)}" for line in sorted(
                  found["nvcomp"], key=lambda line: line["level"])) or "-",
              number(found["pack"], "gb_s"), number(found["compact"], "gb_s"), megabytes(our, "scratch_bytes"),
              our.get("unsteady", "-")]
             for name, found in encoded(outcome).items() for our in [found["cogpu"]]]
    return "\nEncode alone, GB/s of decoded bytes:\n\n" + markdown(
        ["case", "level", "**encode**", "size", "nvCOMP, by algorithm (size)", "pack", "compact", "scratch MB",
         "unsteady blocks"], cells)


def whole_writes(outcome):
    return [line for line in outcome["writes"] if "failed" not in line]


def write_table(outcome):
    cells = []
    for line in whole_writes(outcome):
        memory, buffer, cache, file = (line[f"to_{job}"] for job in ("memory", "buffer", "cache", "file"))
        cells.append([
            write_title(line), number(memory.get("cogpu", {})), number(buffer.get("cogpu", {})),
            number(memory.get("wire", {})), *(number(cache.get(who, {})) for who in ("cogpu", "bare", "xarray-spatial")),
            *(number(file.get(who, {})) for who in ("cogpu", "bare")),
            *(megabytes(cache.get(who, {})) for who in ("cogpu", "xarray-spatial"))])
    side = outcome["write_side"]
    return f"\nRaster of {side} x {side} to a file, ms:\n\n" + markdown(
        ["file", "**to memory**", "**to a buffer**", "D2H copy", "**to a file**", "bare write", "xarray-spatial",
         "**to a file, flushed**", "bare write, flushed", "file, MB", "xarray-spatial's, MB"], cells)


def peak_table(outcome):
    cells = [[line["who"], f"{line['allowed'] >> 20} MiB" if line["allowed"] else "default", number(line),
              *(megabytes(line, key) for key in ("device_bytes", "host_bytes"))] for line in outcome["peaks"]]
    side = outcome["write_side"]
    return (f"\nA COG with overviews of {side} x {side} float32, deflate p3: memory beyond its input, which is a chunk of "
            "512 rows at a time for cogpu, and the whole raster for xarray-spatial:\n\n" + markdown(
                ["who", "device memory allowed", "ms", "**device, MB**", "**host, MB**"], cells))


def write_report(outcome):
    """What a run found of writing; nothing where it did not write."""
    return ((encoder_table(outcome) if outcome["encode"] else "") + (write_table(outcome) if outcome["writes"] else "") +
            (peak_table(outcome) if outcome["peaks"] else ""))


def remarks(outcome, files):
    """Peers that are not there, files that one refuses or gets wrong, what one says beside."""
    found = [f"{who}: {why}" for who, why in outcome["missing"].items()]
    same = defaultdict(list)
    for name, line in [*files.items(), *((line["file"], line) for line in outcome["writes"])]:
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
    for line in outcome["encode"] + outcome["peaks"]:
        name = line.get("case", "memory of a COG")
        why = line.get("failed") or line.get("refused") or "WRONG" * bool(line["wrong"]) or line.get("note")
        if why and name not in same[line["who"], why]:
            same[line["who"], why].append(name)
    found += [f"{who}, {', '.join(names)}: {why}" for (who, why), names in same.items() if names]
    return "\nRemarks:\n\n" + "".join(f"- {line}\n" for line in found) if found else ""


def head(outcome):
    versions = ", ".join(f"{who} {version}" for who, version in outcome["versions"].items() if who in READERS[:3])
    return (f"{outcome['machine']}; {outcome['cpu_cores']} CPU cores; {outcome['side']} x {outcome['side']}, written "
            f"{outcome['write_side']} x {outcome['write_side']}; medians of up to {outcome['repeats']}; files by "
            f"{outcome['written_by']}; {versions}.\n")


def report(outcome):
    files = by_file(outcome)
    text = head(outcome)
    if files:
        text += "\n" + main_table(files, outcome)
    if outcome["decode"]:
        text += "\n" + decoder_table(files)
    return text + write_report(outcome) + kernel_table(outcome["decode"] + outcome["encode"]) + remarks(outcome, files)


def has_failed(outcome):
    """cogpu did not do something, or did it wrong."""
    ours = [line for part in ("decode", "encode", "peaks") for line in outcome[part] if line["who"] == "cogpu"]
    for line in outcome["reads"] + outcome["writes"]:
        ours += [line] if "failed" in line else [
            line[job][who] for job in line if job.startswith(("from_", "to_")) for who in (READERS[0], READERS[3])
            if who in line[job]]
    return any("failed" in line or "refused" in line and "ms" not in line or line["wrong"] or line.get("unsteady")
               for line in ours)


# ---- docs/bench-gpu.md -------------------------------------------------------------------------

def shown(outcome):
    """The files that the page shows, as they were read: tiles, then strips, then rasters of other sizes; of tiles of 256
    and strips only some, and of zlib's and PackBits none with tiles of 512."""
    lines = [line for line in outcome["reads"] if "ms" in line.get("from_file", {}).get("cogpu", {})]
    names = {line["file"]: short(line["file"]) for line in lines}
    return sorted((line for line in lines if names[line["file"]].startswith(PAGE_ROWS) or "-1024-" in line["file"] or
                   "-s3600-" in line["file"] or (
        "-512-" in line["file"] and not {"zlib", "packbits"} & {*names[line["file"]].split("-")})),
        key=lambda line: (not names[line["file"]].endswith(f"-{outcome['side']}"), "-s64-" in line["file"]))


def bold(text):
    return text if text == "-" else f"**{text}**"


def page_reads(outcome):
    files, lines = by_file(outcome), []
    for line in shown(outcome):
        decode, file = files[line["file"]]["decode"], line["from_file"]
        lines.append([title(line["file"], outcome["side"]), *(number(decode.get(who, {}), "gb_s") for who in ("cogpu", "nvcomp")),
                      bold(number(file["cogpu"])), *(number(file.get(who, {})) for who in READERS[1:]),
                      number(file.get("ring", {})), number(line["from_memory"].get("wire", {}))])
    return markdown(["file", "decode, GB/s", "nvCOMP", "file to raster, ms", "nvTIFF", "xarray-spatial",
                     f"{outcome['cpu_cores']} CPU cores + upload", "raw upload", "H2D copy"], lines)


def page_writes(outcome):
    encoders, lines = encoded(outcome), []
    for line in whole_writes(outcome):
        found, cache, file = encoders[line["file"]], line["to_cache"], line["to_file"]
        lines.append([write_title(line), number(found["cogpu"], "gb_s"), size(found["cogpu"]),
                      speed_and_size(nvcomp_default(found["nvcomp"])), bold(number(line["to_buffer"].get("cogpu", {}))),
                      bold(number(cache.get("cogpu", {}))), *(number(cache.get(who, {})) for who in ("bare", "xarray-spatial")),
                      *(number(file.get(who, {})) for who in ("cogpu", "bare")), megabytes(cache.get("cogpu", {}))])
    return markdown(["file", "encode, GB/s", "size", "nvCOMP, GB/s (size)", "raster to buffer, ms", "raster to file, ms",
                     "bare write", "xarray-spatial", "flushed, ms", "bare write, flushed", "MB"], lines)


def page_parts(outcome):
    """{mark in the page: what belongs there}, of what was measured."""
    missing = "".join(f"\nNot measured: {who} ({why}).\n" for who, why in outcome["missing"].items())
    parts = {}
    if outcome["reads"]:
        parts["gpu-read"] = (head(outcome) + "\n" + page_reads(outcome) + missing +
                             f"\n![File to raster, milliseconds, of cogpu and its peers]({PICTURE}.png)\n")
    if outcome["writes"]:
        parts["gpu-write"] = (head(outcome) + "\n" + page_writes(outcome) +
                              (peak_table(outcome) if outcome["peaks"] else "") + missing +
                              f"\n![Raster to file, milliseconds, of cogpu and xarray-spatial]({PICTURE}-write.png)\n")
    return parts


# ---- the pictures ------------------------------------------------------------------------------

@dataclass
class Row:
    """A dot for each name, and a mark for what cannot be beaten."""
    title: str
    times: dict
    mark: float | None


def in_time(found, names):
    """{name: milliseconds} of those who did it, and right."""
    return {name: found[name]["ms"] for name in names if "ms" in found.get(name, {}) and not found[name]["wrong"]}


def read_rows(outcome):
    return [Row(title(line["file"], outcome["side"]), in_time(line["from_file"], READERS),
                line["from_memory"].get("wire", {}).get("ms")) for line in shown(outcome)]


def write_rows(outcome):
    rows = []
    for line in whole_writes(outcome):
        times = in_time(line["to_cache"], ("cogpu", "xarray-spatial"))
        times |= {TO_BUFFER: ms for ms in in_time(line["to_buffer"], ("cogpu",)).values()}
        if times:
            rows.append(Row(write_title(line), times, line["to_cache"].get("bare", {}).get("ms")))
    return rows


def draw(outcome, folder, name="gpu"):
    """The pictures of what was measured, as NAME.png and NAME-write.png; their paths, none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no pictures: matplotlib is not installed", file=sys.stderr)
        return []
    matplotlib.use("Agg")
    gpu, side, write_side = outcome["machine"].split(",")[0], outcome["side"], outcome["write_side"]
    pictures = {
        f"{name}.png": (read_rows(outcome), f"File to raster in GPU memory: milliseconds, {side:,} x {side:,} pixels in "
                        f"tiles of 512 ({gpu})", "H2D copy of the stored bytes alone"),
        f"{name}-write.png": (write_rows(outcome), f"Raster in GPU memory to file: milliseconds, {write_side:,} x "
                              f"{write_side:,} pixels ({gpu})", "a bare write of the file's bytes")}
    drawn = {folder / picture: parts for picture, parts in pictures.items() if parts[0]}
    for path, parts in drawn.items():
        draw_picture(path, *parts, outcome["cpu_cores"])
    return list(drawn)


def draw_picture(path, rows, heading, mark, cores):
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.36 * len(rows)))
    for y, row in enumerate(rows):
        draw_row(axes, y, row)
    finish_axes(axes, rows)
    add_head(figure, heading, mark, [name for name in COLOURS if any(name in row.times for row in rows)], cores)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def draw_row(axes, y, row):
    ends = [*row.times.values(), *[row.mark] * (row.mark is not None)]
    axes.plot([min(ends), max(ends)], [y, y], color="#dddddd", lw=1, zorder=1)
    for name, ms in row.times.items():
        axes.scatter(ms, y, s=60 if name == "cogpu" else 34, color=COLOURS[name], zorder=3)
        below = name in (READERS[3], TO_BUFFER)  # close to another in some rows
        axes.annotate(f"{ms:.1f}" if ms < 20 else f"{ms:.0f}", (ms, y), (0, -5 if below else 5), ha="center",
                      va="top" if below else "bottom", textcoords="offset points", fontsize=7,
                      fontweight="bold" if name == "cogpu" else "normal", color="#333333")
    if row.mark is not None:
        axes.plot([row.mark, row.mark], [y - 0.32, y + 0.32], color=MARK_COLOUR, lw=2, zorder=2)


def finish_axes(axes, rows):
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize=8.5)
    axes.set_ylim(len(rows) - 0.4, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.grid(axis="x", which="major", color="#eeeeee", lw=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda ms, _: f"{ms:g} ms")
    axes.xaxis.set_minor_formatter(lambda ms, _: "")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def add_head(figure, heading, mark, names, cores):
    """Title and legend, over the whole width."""
    from matplotlib.lines import Line2D
    words = {READERS[3]: f"cogpu on {cores} CPU cores, then upload"}
    marks = [Line2D([], [], color=MARK_COLOUR, marker="|", ms=9, mew=2, ls="", label=mark)]
    marks += [Line2D([], [], color=COLOURS[name], marker="o", ls="", label=words.get(name, name)) for name in names]
    inch = 1 / figure.get_figheight()
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 * inch))
    figure.text(0.015, 1 - 0.27 * inch, heading, fontsize=11)
    figure.legend(handles=marks, loc="upper left", bbox_to_anchor=(0.01, 1 - 0.33 * inch), ncols=5, fontsize=8.5,
                  frameon=False, handletextpad=0.1, columnspacing=1.4, borderpad=0.2)


# ---- as a program ------------------------------------------------------------------------------

def joined(outcomes):
    """One outcome of several, as of one run that did all; what a later one did again counts."""
    whole = outcomes[0] | {part: sum((outcome[part] for outcome in outcomes), []) for part in LISTS}
    return whole | {about: {who: what for outcome in outcomes for who, what in outcome[about].items()}
                    for about in ("versions", "missing")}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("outcomes", nargs="+", type=Path, metavar="GPU.JSON")
    options.add_argument("--docs", action="store_true", help="put the tables into docs/bench-gpu.md, and pictures beside it")
    picked = options.parse_args()
    outcome = joined([json.loads(path.read_text()) for path in picked.outcomes])
    parts = page_parts(outcome)
    print("\n".join(parts.values()))
    if picked.docs:
        from common import put_into
        for mark, text in parts.items():
            put_into("bench-gpu.md", mark, text)
        draw(outcome, ROOT / "docs", PICTURE)


if __name__ == "__main__":
    main()
