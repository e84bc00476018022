"""Takes the name of a raster, reads its first band as float32 into memory of the first GPU, NaN where there is no data,
and makes a CuPy array of it without a copy: the C library called by ctypes, the pixels handed on by DLPack.

    LD_LIBRARY_PATH=build python examples/read_cupy.py dem.tif

Without a GPU: with EMU in the place of CUDA, and numpy in that of cupy, it runs on the emulated one, slowly.
"""
import ctypes
import os
import sys
from ctypes import byref, c_char, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p

# ---- of cogpu.h, what is used here ----
CUDA, EMU, F32 = 1, 2, 10


def struct(name, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


Error = struct("Error", status=c_int, directory=c_int32, block=c_int64, offset=c_int64, message=c_char * 232)
Level = struct("Level", directory=c_uint32, external=c_int, width=c_uint32, height=c_uint32, others=c_double * 14)
Request = struct("Request", image=c_uint32, level=c_uint32, x=c_uint32, y=c_uint32, width=c_uint32, height=c_uint32,
                 bands=c_void_p, band_count=c_uint32, part=c_int, fill_bad_blocks=c_int, nan_where_invalid=c_int,
                 scaled=c_int, threads=c_uint32, context=c_void_p, pending=c_void_p, progress=c_void_p,
                 progress_user=c_void_p)
Raster = struct("Raster", data=c_void_p, type=c_int, bands=c_uint32, height=c_uint32, width=c_uint32,
                stride_band=c_int64, stride_y=c_int64, stride_x=c_int64, device=c_int, device_index=c_uint32,
                stream=c_void_p)
cogpu = ctypes.CDLL("libcogpu.so.0")


def call(function, *arguments):
    error = Error()
    if function(*arguments, byref(error)) != 0:
        raise RuntimeError(error.message.decode())


# ---- a band, for CuPy ----
DEVICE = CUDA
context = c_void_p()  # of all reads: threads, and working memory of the GPU
call(cogpu.cogpu_context_open, None, byref(context))
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object


class Band:
    """Pixels on the GPU, which live as long as this or an array of them."""

    def __init__(self, path):
        file, level, memory, first = c_void_p(), Level(), c_void_p(), c_uint32(1)
        self.raster = Raster(type=F32, bands=1, device=DEVICE)
        call(cogpu.cogpu_open, os.fsencode(path), None, byref(file))
        try:
            call(cogpu.cogpu_level_info, file, 0, 0, byref(level))
            size = c_uint64(4 * level.width * level.height)
            call(cogpu.cogpu_device_allocate, context, DEVICE, 0, size, byref(memory))
            self.raster.data, self.raster.width, self.raster.height = memory, level.width, level.height
            request = Request(bands=ctypes.addressof(first), band_count=1, nan_where_invalid=1, context=context)
            call(cogpu.cogpu_read, file, byref(request), byref(self.raster), None)
        finally:
            cogpu.cogpu_close(file)

    def __del__(self):
        cogpu.cogpu_device_release(context, DEVICE, 0, c_void_p(self.raster.data))

    def __dlpack_device__(self):
        return (2, 0) if DEVICE == CUDA else (1, 0)  # DLPack's numbers: a GPU of NVIDIA's, or the host

    def __dlpack__(self, **_):  # of whatever stream: cogpu_read has waited for the GPU
        tensor = c_void_p()
        call(cogpu.cogpu_dlpack, byref(self.raster), python.Py_DecRef, c_void_p(id(self)), byref(tensor))
        python.Py_IncRef(ctypes.py_object(self))  # the array's, which gives it back holding the GIL, as NumPy's does
        return python.PyCapsule_New(tensor, b"dltensor", None)


if __name__ == "__main__":
    import cupy
    band = cupy.from_dlpack(Band(sys.argv[1]))[0]
    print(f"{band.shape[1]} x {band.shape[0]} pixels are on the GPU, their mean is {float(cupy.nanmean(band)):g}")
