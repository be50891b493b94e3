"""The effects that OpenCV has. Components of a pixel lie side by side there, as its users have them."""
import cv2
import numpy as np

from peer import THREADS

cv2.setNumThreads(THREADS)


class Planes:
    """A result whose planes are taken apart when they are looked at."""

    def __init__(self, image, scale=1):
        self.image, self.scale = image, scale

    def __array__(self, dtype=None, copy=None):
        image = self.image if self.image.ndim == 3 else self.image[:, :, None]
        return np.ascontiguousarray(image.transpose(2, 0, 1)) * np.float32(self.scale)


def together(planes):
    return np.ascontiguousarray(planes.transpose(1, 2, 0))


def gaussian(planes):
    image = together(planes)
    result = np.empty_like(image)

    def run():
        cv2.GaussianBlur(image, (19, 19), 2.0, dst=result, borderType=cv2.BORDER_REFLECT_101)
        return Planes(result)

    return run


def unsharp(planes):
    image = together(planes)
    soft, result = np.empty_like(image), np.empty_like(image)

    def run():
        cv2.GaussianBlur(image, (15, 15), 1.5, dst=soft, borderType=cv2.BORDER_REFLECT_101)
        cv2.addWeighted(image, 2, soft, -1, 0, dst=result)
        return Planes(result)

    return run


def separable(image):
    result = np.empty_like(image)

    def run():
        cv2.GaussianBlur(image, (5, 5), 1.0, dst=result, borderType=cv2.BORDER_REPLICATE)
        return result

    return run


def median(planes):
    image = together(planes)
    result = np.empty_like(image)

    def run():
        cv2.medianBlur(image, 5, dst=result)
        return Planes(result)

    return run


def resize(planes):
    image = together(planes)
    height, width = image.shape[0] * 3 // 2, image.shape[1] * 3 // 2
    result = np.empty((height, width, 3), np.float32)

    def run():
        cv2.resize(image, (width, height), dst=result, interpolation=cv2.INTER_CUBIC)
        return Planes(result)

    return run


def clahe(planes):
    """Integers of 16 bits: OpenCV has no other that are as exact."""
    image = (planes[0] * 65535).astype(np.uint16)
    result = np.empty_like(image)
    equaliser = cv2.createCLAHE(clipLimit=4.0, tileGridSize=(8, 8))

    def run():
        equaliser.apply(image, dst=result)
        return Planes(result, 1 / 65535)

    return run
