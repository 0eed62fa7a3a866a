# SPDX-License-Identifier: LGPL-2.1-or-later
"""The devices that the elements can use, by the library's own functions."""

import ctypes
import os


class Error(Exception):
    """There is no such device; the text is a sentence for the user."""


class GError(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_uint32), ("code", ctypes.c_int), ("message", ctypes.c_char_p)]


def open_device(build, name=None):
    """Opens a device, by default the one that elements use, for good. Returns its name and its description."""
    library = ctypes.CDLL(os.path.join(build, "lib", "gpucache", "libgpucache-1.0.so.0"))
    library.gpu_device_open.restype = ctypes.c_void_p
    library.gpu_device_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.POINTER(GError))]
    for function in (library.gpu_device_name, library.gpu_device_description):
        function.restype = ctypes.c_char_p
        function.argtypes = [ctypes.c_void_p]
    error = ctypes.POINTER(GError)()
    device = library.gpu_device_open(name.encode() if name else None, ctypes.byref(error))
    if not device:
        raise Error(error.contents.message.decode())
    return library.gpu_device_name(device).decode(), library.gpu_device_description(device).decode()


def find_gpus(build):
    """All GPUs that work, as open_device() says them."""
    found = []
    try:
        while True:
            found.append(open_device(build, f"cuda:{len(found)}"))
    except Error:
        return found
