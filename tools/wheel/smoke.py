"""What must work where only Python and NumPy are installed: runs inside the roots of test_in_chroot.sh.

    smoke.py               all of it; an AssertionError says what failed
    smoke.py first-pixels  imports, writes and reads a file, and no more
"""

import http.server
import importlib.util
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading

import cogpu
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
LOSSLESS = ["none", "deflate", "zstd", "lzw", "packbits", "lerc", "lzma"]
LOSSY = ["jpeg", "webp"]
READ_ONLY = ["lerc_deflate", "lerc_zstd", "ccitt_rle", "ccitt_g3", "ccitt_g4", "old_jpeg", "jpeg2000", "jpegxl"]
PIXELS = (np.indices((3, 300, 400)).sum(0) // 3).astype("uint8")  # smooth: WebP takes three bands alone
SETTINGS = {"allow_private_addresses": True, "max_retries": 1, "connect_timeout_seconds": 5, "timeout_seconds": 20}


def write(path, **options):
    return cogpu.to_geotiff(PIXELS, path, crs="EPSG:32633", transform=(10, 0, 400000, 0, -10, 5000000), tile_size=128,
                            **options)


def first_pixels(folder):
    path = write(folder / "first.tif")
    assert (np.asarray(cogpu.open(path).read()) == PIXELS).all()


def test_nothing_else_is_installed(folder):
    present = [name for name in ("xarray", "dask", "rasterio", "pyproj", "certifi") if importlib.util.find_spec(name)]
    assert not present, present


def test_codecs_are_complete(folder):
    available = {row["name"] for row in cogpu.codecs() if row["can_decode"]}
    assert available >= {*LOSSLESS, *LOSSY, *READ_ONLY}, available


def test_written_files_are_read(folder):
    for codec in LOSSLESS + LOSSY:
        path = write(folder / f"{codec}.tif", compression=codec, cog=True)
        with cogpu.open(path) as file:
            difference = np.abs(np.asarray(file.read()).astype(int) - PIXELS)
        assert difference.max() <= (0 if codec in LOSSLESS else 16), codec
        assert cogpu.check(path)["verdict"] != "invalid", codec


def test_emulated_gpu(folder):
    path = write(folder / "emulated.tif", compression="zstd")
    with cogpu.open(path) as file:
        assert (np.asarray(file.read(device="emu")) == PIXELS).all()


def test_wkt(folder):
    """PROJ's database is the wheel's own; another one, as a setting of other packages, does not replace it."""
    path = write(folder / "utm.tif")
    assert cogpu.open(path).crs == "EPSG:32633"
    program = f"import cogpu; print(cogpu.open({str(path)!r}).wkt)"
    for variables in ({}, {"PROJ_DATA": "/nowhere"}):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={**os.environ, **variables})
        assert done.stdout.startswith('PROJCRS["WGS 84 / UTM zone 33N"') and not done.stderr, done


class Server(http.server.ThreadingHTTPServer):
    """https://localhost, with the certificate server.pem: ranges are ignored, whole files are sent."""

    def __init__(self, folder):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=str(folder))

            def log_message(self, *arguments):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(HERE / "server.pem", HERE / "server.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


def test_https(folder):
    """Without certificates the error names the variable; with it the file is read."""
    write(folder / "served.tif")
    server = Server(folder)
    url = f"https://localhost:{server.server_port}/served.tif"
    cogpu.configure(network=SETTINGS)
    try:
        cogpu.open(url)
        raise AssertionError("a server was trusted without certificates")
    except cogpu.IOError as error:
        assert "SSL_CERT_FILE" in str(error), error
    os.environ["SSL_CERT_FILE"] = str(HERE / "server.pem")
    cogpu.configure(network=SETTINGS)
    assert (np.asarray(cogpu.open(url).read()) == PIXELS).all()


def report_import_time():
    program = "import time; start = time.perf_counter(); import cogpu; print(time.perf_counter() - start)"
    times = [float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
             for _ in range(5)]
    print(f"import cogpu: {1e3 * min(times):.0f} ms")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if sys.argv[1:] == ["first-pixels"]:
            first_pixels(folder)
            return
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(folder)
                print(f"{name}: passed")
        report_import_time()


main()
