"""Drawn sheets: ink lines, flat shapes, hatching and lettering, for edges that photographs lack.

Made by chance from a fixed seed, at twice the size, then reduced.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

VERSION = 1
COUNT = 24
SIDE = 768
FONTS = ["/usr/share/fonts/truetype/dejavu/%s.ttf" % name
         for name in ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono")]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?&%()-+"


def _colour(r):
    if r.random() < 0.35:
        return (int(r.integers(256)),) * 3
    return tuple(int(v) for v in r.integers(0, 256, 3))


def _curve(r, side):
    """Points of a smooth open curve."""
    start, reach = r.random(2) * side, r.random(4) * side * 0.4 + 10
    a, b = r.normal(size=(2, 2)), r.normal(size=(2, 2))
    t = np.linspace(0, 1, 40)[:, None]
    points = start + reach[0] * a[0] * t + reach[1] * a[1] * t ** 2 \
        + reach[2] * 0.3 * b[0] * np.sin(6 * t) + reach[3] * 0.1 * b[1] * np.cos(15 * t)
    return [tuple(p) for p in points]


def _shape(r, draw, side):
    centre, radius = r.random(2) * side, 8 + r.random() ** 2 * side * 0.25
    angles = np.sort(r.random(int(r.integers(3, 9)))) * 2 * np.pi
    ink = _colour(r) if r.random() < 0.5 else (0, 0, 0)
    width = int(r.integers(0, 9))
    if r.random() < 0.5:
        points = [tuple(centre + radius * np.array([np.cos(a), np.sin(a)])) for a in angles]
        draw.polygon(points, fill=_colour(r))
        if width:
            draw.line(points + points[:1], fill=ink, width=width)
    else:
        wide = radius * (0.4 + r.random())
        box = (centre[0] - wide, centre[1] - radius, centre[0] + wide, centre[1] + radius)
        draw.ellipse(box, fill=_colour(r), outline=ink, width=width)


def _hatch(r, draw, side):
    centre, size = r.random(2) * side, 30 + r.random() * 150
    angle, step = r.random() * np.pi, 4 + r.random() * 16
    along, across = (np.array([np.cos(angle + d), np.sin(angle + d)]) for d in (0, np.pi / 2))
    ink, width = _colour(r), int(r.integers(1, 6))
    for offset in np.arange(-size, size, step):
        jitter = r.normal(size=2) * 3
        a, b = (centre + across * offset + along * size * k + jitter for k in (-1, 1))
        draw.line([tuple(a), tuple(b)], fill=ink, width=width)


def _text(r, draw, side):
    font = ImageFont.truetype(FONTS[int(r.integers(len(FONTS)))], int(r.integers(14, 90)))
    word = "".join(LETTERS[i] for i in r.integers(0, len(LETTERS), int(r.integers(3, 16))))
    draw.text(tuple(r.random(2) * side), word, fill=_colour(r), font=font)


def sheet(seed):
    r = np.random.default_rng(seed)
    side = 2 * SIDE
    corner = [np.array(_colour(r), np.float32) for _ in range(3)]
    y, x = np.mgrid[0:side, 0:side, ][:, :, :, None].astype(np.float32) / side
    ground = corner[0] * (1 - x) + corner[1] * x * (1 - y) + corner[2] * x * y
    image = Image.fromarray(ground.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(220):
        kind = r.random()
        if kind < 0.4:
            _shape(r, draw, side)
        elif kind < 0.75:
            for _ in range(3):
                draw.line(_curve(r, side), fill=_colour(r) if r.random() < 0.5 else (0, 0, 0),
                          width=int(r.integers(1, 10)), joint="curve")
        elif kind < 0.87:
            _hatch(r, draw, side)
        else:
            _text(r, draw, side)
    return image.resize((SIDE, SIDE), Image.LANCZOS)


def sheets():
    return [sheet(seed) for seed in range(COUNT)]
