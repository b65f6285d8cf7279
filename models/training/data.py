"""Training pairs: sharp pictures from photos.tsv and drawn sheets, and their reduced versions.

Photographs are first reduced (antialiased) by several factors, some turned as well, which removes
the traces of the camera and of JPEG and leaves detail at the pixel level; photographed textures
likewise. Low resolution is antialiased bicubic (a = -0.5, Pillow), rounded to 8 bits.
"""

import hashlib
import io
import math
import os
import zipfile

import numpy as np
from PIL import Image, ImageFilter

import drawings

Image.MAX_IMAGE_PIXELS = None
HERE = os.path.dirname(os.path.abspath(__file__))
# Of the reduced photographs: long side, and by how many degrees they are turned.
VIEWS = ((1900, 0), (1500, 0), (1200, 0), (950, 0), (750, 0), (1100, 25), (850, 65))
TEXTURE_SIDE, TEXTURE_REDUCTIONS = 1024, (2, 3)  # of textures that are taken, at least
HELD_OUT_SIDE = 1280
HELD_OUT_CROP = 384


def read_list(split):
    with open(os.path.join(HERE, "photos.tsv"), encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    rows = [row for row in rows if row[0] == split]
    missing = {row[1] for row in rows if not os.path.isfile(row[4].split(":")[0])}
    if not all(os.path.isfile(font) for font in drawings.FONTS):
        missing.add("fonts-dejavu-core")
    if missing:
        raise SystemExit("train: install the Debian packages: " + " ".join(sorted(missing)))
    return [row[4] for row in rows]


def textures(archive):
    """The large pictures of ARCHIVE.zip:FOLDER; not maps of normals and of gloss."""
    path, folder = archive.split(":")
    with zipfile.ZipFile(path) as files:
        for name in sorted(files.namelist()):
            kind = name.split(".")[0].rsplit("_", 1)[-1]
            if name.startswith(folder) and name.endswith(".dds") and kind not in ("norm", "spec"):
                image = Image.open(io.BytesIO(files.read(name)))
                if min(image.size) >= TEXTURE_SIDE:
                    yield image.convert("RGB")


def views(file):
    """The reduced pictures that a row of photos.tsv gives."""
    if ":" in file:
        for image in textures(file):
            for n in TEXTURE_REDUCTIONS:
                yield image.resize((image.width // n, image.height // n), Image.LANCZOS)
        return
    image = Image.open(file).convert("RGB")
    for side, degrees in VIEWS:
        view = turned(image, degrees) if degrees else image
        if side <= 0.75 * max(view.size):
            yield reduce_to(view, side)


def turned(image, degrees):
    """The largest part of the turned picture that has its proportions and no empty corners."""
    angle, (w, h) = math.radians(degrees), image.size
    share = 1 / (math.cos(angle) + max(w / h, h / w) * math.sin(angle))
    x, y = (round(n * (1 - share) / 2) + 2 for n in (w, h))
    return image.rotate(degrees, Image.BICUBIC).crop((x, y, w - x, h - y))


def whole(image, scale):
    """The picture cut to multiples of `scale`."""
    w, h = image.size
    return image.crop((0, 0, w - w % scale, h - h % scale))


def reduce_to(image, long_side):
    w, h = image.size
    f = long_side / max(w, h)
    return image.resize((round(w * f), round(h * f)), Image.LANCZOS)


def shrink(image, scale):
    return image.resize((image.width // scale, image.height // scale), Image.BICUBIC)


def pair(image, scale):
    """(high, low) as uint8 arrays, height x width x 3."""
    image = whole(image, scale)
    return np.asarray(image), np.asarray(shrink(image, scale))


class Damage:
    """What pictures of the web have suffered at low resolution: blur, noise, JPEG; all mild."""
    BLUR, QUALITY = (0.2, 0.8), (55, 95)  # in pixels; of libjpeg
    NOISE = 3.0  # in grey levels, at most; half of the pictures have none
    BLOCK = 16  # of JPEG, colour included

    @staticmethod
    def apply(low, blur, noise, quality):
        image = Image.fromarray(low).filter(ImageFilter.GaussianBlur(blur))
        if noise is not None:
            noisy = (np.asarray(image) + noise).round().clip(0, 255)
            image = Image.fromarray(noisy.astype(np.uint8))
        stored = io.BytesIO()
        image.save(stored, "JPEG", quality=int(quality))
        return np.asarray(Image.open(stored))

    @classmethod
    def held_out(cls, low):
        return cls.apply(low, 0.5, None, 75)

    @classmethod
    def draw(cls, low, random):
        noise = None
        if random.random() < 0.5:
            noise = random.normal(size=low.shape) * random.random() * cls.NOISE
        return cls.apply(low, random.uniform(*cls.BLUR), noise, random.uniform(*cls.QUALITY))


def training_pairs(scale, cache):
    """List of (high, low); kept as one file in `cache`, named by what it was made of."""
    files = read_list("train")
    kinds = (files, VIEWS, TEXTURE_SIDE, TEXTURE_REDUCTIONS, drawings.VERSION, scale)
    name = hashlib.sha256(repr(kinds).encode()).hexdigest()
    path = os.path.join(cache, "pairs-%s.npz" % name[:12])
    if not os.path.exists(path):
        arrays = []
        for file in files:
            for view in views(file):
                arrays += pair(view, scale)
        for sheet in drawings.sheets():
            arrays += pair(sheet, scale)
        os.makedirs(cache, exist_ok=True)
        with open(path + ".tmp", "wb") as out:
            np.savez(out, *arrays)
        os.replace(path + ".tmp", path)
    with np.load(path) as stored:
        arrays = [stored["arr_%d" % i] for i in range(len(stored.files))]
    return list(zip(arrays[0::2], arrays[1::2]))


def held_out(scale, damaged=False):
    """[(name, high, low)]: of each held-out photograph the crop with most detail."""
    result = []
    for file in read_list("held-out"):
        image = reduce_to(Image.open(file).convert("RGB"), HELD_OUT_SIDE)
        n = HELD_OUT_CROP
        luma = np.asarray(image.convert("L")).astype(np.float32)
        rough = np.abs(np.diff(luma, axis=0))[:, :-1] + np.abs(np.diff(luma, axis=1))[:-1]
        x, y = max(((x, y) for y in range(0, image.height - n, 32)
                    for x in range(0, image.width - n, 32)),
                   key=lambda p: rough[p[1]:p[1] + n, p[0]:p[0] + n].mean())
        name = os.path.splitext(os.path.basename(file))[0]
        if name == "2560x1600":  # Plasma names files by size, folders by picture
            name = file.split("/")[-4]
        high, low = pair(image.crop((x, y, x + n, y + n)), scale)
        result.append((name, high, Damage.held_out(low) if damaged else low))
    return result


class Sampler:
    """Random patches; those that bicubic gets wrong are drawn more often."""

    def __init__(self, pairs, scale, patch, seed, grid=8, damaged=False,
                 permute=True):
        self.permute = permute
        self.pairs, self.scale, self.patch, self.grid = pairs, scale, patch, grid
        self.damaged = damaged
        self.random = np.random.default_rng(seed)
        places, weights = [], []
        for index, (high, low) in enumerate(pairs):
            up = np.asarray(Image.fromarray(low).resize(high.shape[1::-1], Image.BICUBIC))
            error = np.abs(up.astype(np.int16) - high).mean(axis=2)
            h, w = low.shape[:2]
            error = error.reshape(h, scale, w, scale).mean(axis=(1, 3))
            total = np.pad(error, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
            y, x = np.mgrid[0:h - patch - grid + 1:grid, 0:w - patch - grid + 1:grid]
            n = patch + grid
            mean = (total[y + n, x + n] - total[y, x + n] - total[y + n, x] + total[y, x]) / n ** 2
            places.append(np.stack([np.full_like(y, index), y, x], -1).reshape(-1, 3))
            weights.append(np.clip(mean, 0.5, 12.0).reshape(-1) ** 0.5)
        self.places = np.concatenate(places)
        self.cumulative = np.cumsum(np.concatenate(weights), dtype=np.float64)

    def low_patch(self, low, y, x, colours):
        p, b = self.patch, Damage.BLOCK
        if not self.damaged:
            return low[y:y + p, x:x + p, colours]
        # With surroundings, so that the blocks of JPEG lie anywhere.
        top, left = (min(int(a), int(n)) for a, n in zip((y, x), self.random.integers(0, b, 2)))
        area = low[y - top:y + p + b, x - left:x + p + b, colours]
        return Damage.draw(area, self.random)[top:top + p, left:left + p]

    def batch(self, size):
        """(high, low): float32 arrays in [0, 1], size x 3 x height x width."""
        highs, lows = [], []
        p, s, r = self.patch, self.scale, self.random
        picks = np.searchsorted(self.cumulative, r.random(size) * self.cumulative[-1])
        for index, y, x in self.places[picks]:
            y, x = y + r.integers(self.grid), x + r.integers(self.grid)
            high, low = self.pairs[index]
            turn, flip, colours = r.integers(4), r.integers(2), np.arange(3)
            if self.permute:
                colours = r.permutation(3)
            high = high[y * s:(y + p) * s, x * s:(x + p) * s, colours]
            for out, a in ((highs, high), (lows, self.low_patch(low, y, x, colours))):
                a = np.rot90(a, turn)
                out.append((a[:, ::-1] if flip else a).transpose(2, 0, 1))
        return tuple(np.stack(a).astype(np.float32) / np.float32(255) for a in (highs, lows))
