"""What `cogpu reference` prints: a manual page, completions for bash and zsh, and Markdown, each with every option of every
command."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))

pytestmark = pytest.mark.skipif(not os.access(BIN, os.X_OK), reason=f"{BIN} is not built")


def printed(*words):
    return subprocess.run([BIN, *words], check=True, text=True, stdout=subprocess.PIPE).stdout


def commands():
    return re.findall(r"^  (\w+) ", printed("--help"), re.M)


def options(command):
    return re.findall(r"^  (--[\w-]+)", printed("help", command), re.M)


@pytest.fixture(params=["markdown", "man", "bash", "zsh"])
def reference(request):
    return printed("reference", request.param).replace("\\-", "-")


def test_every_command_and_option_is_there(reference):
    assert len(commands()) == 11
    for command in commands():
        assert command in reference
        assert all(re.search(rf"{option}(?![\w-])", reference) for option in options(command)), command


def test_marks_are_replaced(reference):
    assert not re.search(r"@(codecs|levels|resamplings|warp_resamplings|composites|quality_codecs)", reference)
    assert "deflate 1 to 12 (6)" in reference or "complete -o default" in reference


def test_wrong_formats_are_usage_errors():
    for words in (["reference"], ["reference", "html"], ["reference", "man", "bash"]):
        done = subprocess.run([BIN, *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "") and "markdown, man, bash or zsh" in done.stderr


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
def test_man_formats_the_page(tmp_path):
    (tmp_path / "cogpu.1").write_text(printed("reference", "man"))
    done = subprocess.run(["man", "--warnings", "-l", tmp_path / "cogpu.1"], capture_output=True, text=True,
                          env={**os.environ, "MANWIDTH": "100", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, "")
    plain = re.sub(r".\x08", "", done.stdout)
    assert "--compression-level N" in plain and "EXIT STATUS" in plain


@pytest.mark.skipif(not shutil.which("mandoc"), reason="no mandoc")
def test_mandoc_has_no_complaints(tmp_path):
    (tmp_path / "cogpu.1").write_text(printed("reference", "man"))
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", tmp_path / "cogpu.1"], capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def completed(*words):
    """What bash offers to complete the final word."""
    script = printed("reference", "bash") + f"""
COMP_WORDS=(cogpu {' '.join(f"'{word}'" for word in words)})
COMP_CWORD={len(words)}
_cogpu
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "-c", script], check=True, text=True, stdout=subprocess.PIPE).stdout.split()


def test_bash_completes():
    assert completed("che") == ["check", "checksum"]
    assert completed("help", "dev") == ["devices"]
    assert completed("check", "--s") == ["--strict", "--skip-blocks", "--sidecars"]
    assert completed("convert", "a.tif", "--codec", "lz") == ["lzw", "lzma"]
    assert completed("read", "--type", "") == ["float16", "float32", "float64"]
    assert completed("bench", "--device", "c") == ["cpu", "cuda"]
    assert "lanczos" not in completed("convert", "--resampling", "") and "cubic" in completed("convert", "--resampling", "")
    assert completed("warp", "--resampling", "cub") == ["cubic", "cubicspline"]
    assert completed("mosaic", "--composite", "m") == ["min", "max", "mean", "median"]
    assert completed("info", "a") == []  # a file: bash's own completion
    for command in commands():
        assert completed(command, "--") == options(command)


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_zsh_accepts_its_completion(tmp_path):
    """It parses, and compinit registers it; completing needs a terminal."""
    (tmp_path / "_cogpu").write_text(printed("reference", "zsh"))
    subprocess.run(["zsh", "-n", tmp_path / "_cogpu"], check=True)
    words = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -D -u; print $_comps[cogpu]"
    assert subprocess.check_output(["zsh", "-f", "-c", words], text=True).strip() == "_cogpu"
