"""Arrays: what NumPy and other consumers get of them, where and for how long; and arrays of others as targets."""

import ctypes
import gc
import re
import subprocess
import sys
import threading

import cogpu
import numpy as np
import pytest
from cogpu import _cogpu
from conftest import address, array_module, host, pixels_of

PyCapsule_GetPointer = ctypes.pythonapi.PyCapsule_GetPointer
PyCapsule_GetPointer.restype, PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
PyCapsule_IsValid = ctypes.pythonapi.PyCapsule_IsValid
PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("index", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def versioned(capsule):
    """What stands in a versioned capsule."""
    return Versioned.from_address(PyCapsule_GetPointer(capsule, b"dltensor_versioned"))


class Hidden:
    """An array that speaks the named protocols alone."""

    def __init__(self, array, *names):
        self.array, self.names = array, names

    def __getattr__(self, name):
        if name in self.names:
            return getattr(self.array, name)
        raise AttributeError(name)


class LegacyDLPack:
    """A producer of the time before max_version."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture
def file(path):
    with cogpu.open(path) as file:
        yield file


# ---- DLPack (T189) -------------------------------------------------------------------------------

def test_versioned_capsule(file, pixels, device):
    array = file.read(device=device)
    capsule = array.__dlpack__(max_version=(1, 0))
    made = versioned(capsule)
    assert (made.major, made.flags) == (1, 0)
    assert made.tensor.ndim == 3 and made.tensor.shape[:3] == list(pixels.shape)
    assert made.tensor.strides[:3] == [150 * 200, 200, 1]
    assert (made.tensor.code, made.tensor.bits, made.tensor.lanes) == (0, 16, 1)
    assert made.tensor.data % 256 == 0 and made.tensor.byte_offset == 0
    assert (made.tensor.kind, made.tensor.index) == array.__dlpack_device__()
    assert array.__dlpack_device__() == ((2, int(array.device.split(":")[1])) if device == "cuda" else (1, 0))


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_legacy_capsule(file, version):
    array = file.read()
    capsule = array.__dlpack__(max_version=version)
    assert PyCapsule_IsValid(capsule, b"dltensor")
    tensor = Tensor.from_address(PyCapsule_GetPointer(capsule, b"dltensor"))
    assert tensor.ndim == 3 and tensor.strides[:3] == [150 * 200, 200, 1]


@pytest.mark.parametrize("legacy", [False, True])
def test_it_is_taken_without_a_copy(file, pixels, device, legacy):
    """By NumPy, on a GPU by CuPy."""
    array = file.read(device=device)
    taken = array_module(device).from_dlpack(LegacyDLPack(array) if legacy else array)
    assert np.array_equal(host(taken), pixels) and address(taken) == address(array)
    assert legacy or device == "cuda" or taken.flags.writeable


def test_streams(file):
    array = file.read()
    for stream in (None, -1, 1, 2, 1 << 40):
        assert PyCapsule_IsValid(array.__dlpack__(stream=stream), b"dltensor")
    for stream in (0, -2, 1 << 70):
        with pytest.raises(cogpu.InvalidArgumentError, match="stream"):
            array.__dlpack__(stream=stream)
    for stream in (True, "1", 1.0):
        with pytest.raises(TypeError, match="stream"):
            array.__dlpack__(stream=stream)


def test_copies(file, pixels, device):
    array = file.read(device=device)
    copied = versioned(capsule := array.__dlpack__(max_version=(1, 1), copy=True))
    assert copied.flags == 2 and copied.tensor.data != address(array)
    del capsule
    assert versioned(array.__dlpack__(max_version=(1, 1), copy=False)).flags == 0
    taken = np.from_dlpack(array, device="cpu", copy=True)
    taken[:] = 0
    assert np.array_equal(host(array), pixels)


def test_devices(file):
    array = file.read()
    assert versioned(array.__dlpack__(max_version=(1, 0), dl_device=(1, 0))).flags == 0
    assert np.from_dlpack(array, device="cpu").shape == array.shape
    for elsewhere in ((2, 0), (1, 1), (10, 0)):
        with pytest.raises(BufferError, match="dl_device"):
            array.__dlpack__(dl_device=elsewhere)
    with pytest.raises(TypeError, match="dl_device"):
        array.__dlpack__(dl_device=1)


def test_a_strided_target_is_handed_on_with_its_strides(file, pixels):
    chunky = np.zeros((150, 200, 3), "i2")
    array = file.read(out=chunky.transpose(2, 0, 1))
    taken = np.from_dlpack(array)
    assert taken.strides == (2, 1200, 6) and np.array_equal(taken, pixels)
    copied = np.from_dlpack(array, copy=True)
    assert not np.shares_memory(copied, chunky) and np.array_equal(copied, pixels)
    upside_down = file.read(out=chunky.transpose(2, 0, 1)[::-1, ::-1, ::-1])
    assert np.array_equal(np.from_dlpack(upside_down, copy=True), pixels)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_that_are_not_consumed(file, version):
    array = file.read()
    for _ in range(100):
        array.__dlpack__(max_version=version)
    capsule = array.__dlpack__(max_version=version)
    del array
    gc.collect()
    del capsule


def test_keywords_alone(file):
    with pytest.raises(TypeError):
        file.read().__dlpack__(1)


# ---- NumPy's interface ---------------------------------------------------------------------------

def test_array_interface(file, pixels, device):
    """That of the memory, and not the other."""
    array = file.read(device=device)
    names = ["__array_interface__", "__cuda_array_interface__"]
    own, other = reversed(names) if device == "cuda" else names
    assert (getattr(array, own)["version"], getattr(array, own)["typestr"]) == (3, "<i2")
    assert getattr(array, own)["shape"] == pixels.shape and not hasattr(array, other)
    taken = array_module(device).asarray(array)
    assert address(taken) == address(array) and np.array_equal(host(taken), pixels)
    if device == "cuda":
        assert array.__cuda_array_interface__["stream"] is None
        with pytest.raises(TypeError, match="from_dlpack"):
            np.asarray(array)
    else:
        assert taken.flags.writeable


def test_facts(file, device):
    array = file.read(window=(0, 0, 10, 20), device=device)
    assert (array.shape, array.dtype, array.nbytes) == ((3, 10, 20), "int16", 3 * 10 * 20 * 2)
    assert array.device.split(":")[0] == device and "int16" in repr(array)
    assert array.result["blocks"] == 1 and array.result["first_bad"] is None
    assert array.wait() is None
    with pytest.raises(TypeError):
        _cogpu.Array()


def test_large_arrays_are_aligned(make_file):
    pixels = pixels_of((1, 1024, 4096), "uint8")
    array = cogpu.open(make_file(pixels, blockxsize=512, blockysize=512)).read()
    assert array.__array_interface__["data"][0] % (2 << 20) == 0
    assert np.array_equal(np.asarray(array), pixels)


# ---- lifetimes -----------------------------------------------------------------------------------

@pytest.mark.parametrize("take", [lambda module, array: module.asarray(array),
                                  lambda module, array: module.from_dlpack(array),
                                  lambda module, array: module.from_dlpack(LegacyDLPack(array))],
                         ids=["interface", "dlpack", "legacy"])
def test_memory_outlives_all_else(path, pixels, device, take):
    module, taken = array_module(device), []

    def read():
        with cogpu.open(path) as file:
            taken.append(take(module, file.read(device=device)))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    gc.collect()
    churn = [module.zeros(pixels.shape, pixels.dtype) for _ in range(20)]
    assert np.array_equal(host(taken[0]), pixels) and len(churn) == 20


def test_a_target_lives_as_long_as_its_array(file, pixels):
    array = file.read(out=np.zeros(pixels.shape, "i2"))
    gc.collect()
    churn = [np.zeros(pixels.shape, pixels.dtype) for _ in range(20)]
    assert np.array_equal(np.asarray(array), pixels) and len(churn) == 20


@pytest.mark.parametrize("out", [lambda array: array, memoryview, LegacyDLPack,
                                 lambda array: Hidden(array, "__array_interface__")])
def test_a_target_is_let_go(file, pixels, out):
    target = np.zeros(pixels.shape, "i2")
    before = sys.getrefcount(target)
    array = file.read(out=out(target))
    assert sys.getrefcount(target) > before
    taken = np.from_dlpack(array)
    del array
    assert np.array_equal(taken, pixels)
    del taken
    gc.collect()
    assert sys.getrefcount(target) == before


EXITS = {
    "arrays": "kept = [file.read(device=device), take(file.read(device=device)), np.asarray(file.read())]",
    "capsules": "array = file.read(device=device); kept = [array.__dlpack__(max_version=(1, 0)), array.__dlpack__()]",
    "targets": "out = np.zeros(file.shape, 'i2'); kept = [np.from_dlpack(file.read(out=out)), file.read(out=out)]",
    "pending": "kept = [file.read(device=device, wait=False) for _ in range(3)]",
    "cycle": "kept = []; kept += [kept, file, file.read(device=device)]",
    "threads": "[threading.Thread(target=forever, daemon=True).start() for _ in range(4)]; time.sleep(0.1)",
    "object": "kept = cogpu.open(open(path, 'rb')); kept.read(); kept = [kept, kept.read(window=(0, 0, 5, 5))]",
}


@pytest.mark.parametrize("kept", EXITS)
def test_the_interpreter_ends(path, device, kept):
    """With arrays, capsules and reads alive: no crash, no message, no hang."""
    code = f"""
import atexit, sys, threading, time
import numpy as np
import cogpu
path, device = sys.argv[1:]
file = cogpu.open(path)
def take(array):
    return (__import__("cupy") if device == "cuda" else np).from_dlpack(array)
def forever():
    while True:
        file.read(device=device).__dlpack__()
{EXITS[kept]}
sys.kept_until_the_very_end = globals()
"""
    done = subprocess.run([sys.executable, "-c", code, str(path), device], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


# ---- arrays of others as targets -----------------------------------------------------------------

@pytest.mark.parametrize("speak", [
    lambda array: array,
    LegacyDLPack,
    memoryview,
    lambda array: Hidden(array, "__array_interface__", "__cuda_array_interface__"),
    lambda array: Hidden(array, "__dlpack__", "__dlpack_device__"),
], ids=["itself", "legacy", "buffer", "interface", "dlpack"])
@pytest.mark.parametrize("shape, view", [
    ((4, 160, 210), lambda base: base[:3, :150, :200]),
    ((7, 301, 601), lambda base: base[1:7:2, 1:301:2, 1:601:3]),
    ((3, 150, 200), lambda base: base[::-1, ::-1, ::-1]),
    ((3, 200, 150), lambda base: base.transpose(0, 2, 1)),
    ((160, 210, 4), lambda base: base.transpose(2, 0, 1)[1:, :150, :200]),
], ids=["window", "steps", "backwards", "transposed", "chunky"])
def test_out(file, pixels, device, speak, shape, view, request):
    if device == "cuda" and "buffer" in request.node.name:
        pytest.skip("GPU memory is no buffer")
    if device == "cuda" and re.search("backwards-(legacy|dlpack)", request.node.name):
        pytest.skip("CuPy's DLPack has no negative strides")
    base = array_module(device).full(shape, -1, "i2")
    target = view(base)
    array = file.read(out=speak(target), device="emu" if device == "emu" else None)
    assert np.array_equal(host(target), pixels)
    assert array.device.split(":")[0] == device
    assert np.array_equal(host(array), pixels)
    target[...] = -1
    assert (base == -1).all(), "pixels beside the target were touched"


class LargeStrides:
    """CuPy's way with negative strides: DLPack has them divided as if they were large ones, the interface is right."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, max_version=None):
        capsule = self.array.__dlpack__(max_version=(1, 0))
        for i, stride in enumerate(self.array.strides):
            versioned(capsule).tensor.strides[i] = stride % (1 << 64) // self.array.itemsize
        return capsule


def test_an_interface_is_taken_where_dlpack_is_no_raster(file, pixels):
    target = np.zeros(pixels.shape, "i2")
    before = sys.getrefcount(target)
    array = file.read(out=LargeStrides(target[:, ::-1]))
    assert np.array_equal(target[:, ::-1], pixels) and np.array_equal(np.asarray(array), pixels)
    with pytest.raises(cogpu.InvalidArgumentError, match="out is larger"):
        file.read(out=Hidden(LargeStrides(target[:, ::-1]), "__dlpack__", "__dlpack_device__"))
    del array
    gc.collect()
    assert sys.getrefcount(target) == before, "the tensor that was no raster is still held"


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "c8", "c16"])
def test_out_of_all_types(make_file, dtype):
    pixels = pixels_of((2, 20, 30), dtype)
    with cogpu.open(make_file(pixels)) as file:
        for speak in (np.asarray, LegacyDLPack, memoryview, lambda array: Hidden(array, "__array_interface__")):
            target = np.zeros_like(pixels)
            file.read(out=speak(target))
            assert np.array_equal(target, pixels)


def test_out_of_two_dimensions_is_one_band(file, pixels):
    target = np.zeros((150, 200), "i2")
    assert file.read(bands=2, out=target).shape == (1, 150, 200)
    assert np.array_equal(target, pixels[1])


def test_out_decides_the_type(file, pixels):
    for dtype in ("f2", "f4", "f8"):
        target = np.zeros(pixels.shape, dtype)
        file.read(out=target, masked=True)
        assert np.array_equal(target, np.where(pixels == 7, np.nan, pixels).astype(dtype), equal_nan=True)


def test_an_array_of_ours_as_target(file, pixels, device):
    first = file.read(device=device)
    array_module(device).asarray(first)[...] = 0
    again = file.read(out=first)
    assert again.device == first.device
    assert np.array_equal(host(first), pixels)
    taken = array_module(device).from_dlpack(first)
    assert _cogpu.device_of(taken) == first.device, "memory of an emulated GPU is known again"


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("out, words", [
    (np.zeros((3, 150, 199), "i2"), "shape"),
    (np.zeros((2, 150, 200), "i2"), "shape"),
    (np.zeros((150, 200), "i2"), "shape"),
    (np.zeros((1, 3, 150, 200), "i2"), "dimensions"),
    (np.zeros(90000, "i2"), "dimensions"),
    (np.zeros((3, 150, 200), "u2"), "dtype"),
    (np.zeros((3, 150, 200), "i4"), "dtype"),
    (np.zeros((3, 150, 200), "c8"), "dtype"),
    (np.zeros((3, 150, 200), ">i2"), "type"),
    (np.zeros((3, 150, 200), "?"), "type"),
    (np.zeros((3, 150, 200), "g"), "type"),
    (np.zeros((3, 150, 200), "i2,i2"), "type"),
    (np.zeros((3, 150, 200), "O"), "type"),
    (np.zeros((3, 150, 200), "M8[s]"), "type"),
    (frozen(np.zeros((3, 150, 200), "i2")), "read-only"),
    (memoryview(frozen(np.zeros((3, 150, 200), "i2"))), "read-only"),
    (np.lib.stride_tricks.as_strided(np.zeros((3, 150, 200), "i2"), strides=(0, 400, 2), writeable=True),
     "share memory"),
    (np.lib.stride_tricks.as_strided(np.zeros((3, 150, 200), "i2"), strides=(0, 0, 0), writeable=True), "repeats"),
    (bytearray(3 * 150 * 200 * 2), "dimensions"),
    (b"0" * 10, "dimensions"),
], ids=range(20))
def test_bad_targets_are_refused_by_name(file, out, words):
    with pytest.raises(cogpu.InvalidArgumentError, match=f"out.*{words}"):
        file.read(out=out)


@pytest.mark.parametrize("out", [5, "text", [[1, 2], [3, 4]], object()])
def test_targets_that_are_no_arrays(file, out):
    with pytest.raises(TypeError, match="out"):
        file.read(out=out)


def test_a_target_on_another_device(file):
    with pytest.raises(cogpu.InvalidArgumentError, match="out is on emu:0"):
        file.read(out=file.read(device="emu"), device="cpu")
    with pytest.raises(cogpu.InvalidArgumentError, match="dtype"):
        file.read(out=np.zeros(file.shape, "f4"), dtype="float64")


class Broken:
    """A producer that lies."""

    def __init__(self, interface=None, capsule=None, device=(1, 0)):
        if interface is not None:
            self.__array_interface__ = interface
        if capsule is not None:
            self.__dlpack__ = lambda **words: capsule
            self.__dlpack_device__ = lambda: device


GOOD = {"shape": (3, 150, 200), "typestr": "<i2", "data": (0, False), "version": 3}


@pytest.mark.parametrize("producer", [
    Broken({}), Broken({**GOOD, "shape": 5}), Broken({**GOOD, "shape": (3, -150, 200)}),
    Broken({**GOOD, "shape": (1 << 40,) * 3}),
    Broken({**GOOD, "shape": (3, "150", 200)}), Broken({**GOOD, "typestr": "<i3"}), Broken({**GOOD, "typestr": ""}),
    Broken({**GOOD, "typestr": 7}), Broken({**GOOD, "data": None}), Broken({**GOOD, "data": ("0", False)}),
    Broken({**GOOD, "data": (-1, False)}), Broken({**GOOD, "strides": (2, 2)}),
    Broken({**GOOD, "strides": (1 << 62, 1 << 63, 2)}),
    Broken("text"), Broken(capsule=5), Broken(capsule="text"), Broken(capsule=0, device=None),
    Broken(capsule=0, device=(1,)),
], ids=range(18))
def test_producers_that_lie(file, producer):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        file.read(out=producer)


def test_the_library_refuses_a_null_target(file):
    with pytest.raises(cogpu.InvalidArgumentError):
        file.read(out=Broken(GOOD))


def test_a_capsule_is_renamed_and_used_once(file, pixels):
    target = np.zeros(pixels.shape, "i2")
    capsule = target.__dlpack__(max_version=(1, 0))
    file.read(out=Broken(capsule=capsule))
    assert np.array_equal(target, pixels)
    assert PyCapsule_IsValid(capsule, b"used_dltensor_versioned")
    with pytest.raises(ValueError):
        file.read(out=Broken(capsule=capsule))


# ---- streams -------------------------------------------------------------------------------------

def test_streams_of_an_emulated_gpu(file, pixels):
    """Others than the default ones would be addresses, and nothing is there."""
    ours = file.read(device="emu")
    for target in ({"device": "emu"}, {"device": "emu", "out": np.zeros(pixels.shape, "i2")}, {"out": ours}):
        for stream in (None, 0, 1, 2):
            assert np.array_equal(np.asarray(file.read(stream=stream, **target)), pixels)
        for stream in (3, 1 << 40):
            with pytest.raises(cogpu.InvalidArgumentError, match="stream.*emulated"):
                file.read(stream=stream, **target)
            with pytest.raises(cogpu.InvalidArgumentError, match="stream.*emulated"):
                cogpu.read_many([(file, {"stream": stream, **target})])
    assert np.array_equal(np.asarray(file.read(stream=1 << 40)), pixels), "the host has no streams"


# ---- the interface of CUDA arrays (T190), as far as it can be seen without a GPU ------------------

class Cuda:
    def __init__(self, **interface):
        self.__cuda_array_interface__ = {**GOOD, **interface}


def test_cuda_arrays_must_lie_on_a_gpu(file):
    host = np.zeros((3, 150, 200), "i2")
    with pytest.raises(cogpu.Error, match="GPU"):
        file.read(out=Cuda(data=(host.ctypes.data, False)))
