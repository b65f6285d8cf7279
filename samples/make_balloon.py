#!/usr/bin/python3
"""Makes samples/balloon.mp4 and balloon.csv: a hot-air balloon rises before a mountain, comes
nearer and drifts behind a fir, while another one hangs in the distance.

make_balloon.py UPSCALE

UPSCALE is the program: the mountain is mountain.png, four times larger. Needs python3-numpy,
python3-pil and ffmpeg. Balloons and trees are drawn here. balloon.csv has the box of each frame,
of the whole balloon also where the fir hides a part.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, FRAMES, RATE = 640, 360, 250, 25
FINE = 3  # pixels that are drawn for one, in each direction
RED, YELLOW, CREAM = (196, 38, 34), (246, 186, 40), (250, 236, 206)
BLUE, WHITE = (44, 84, 168), (232, 238, 244)
BASKET, ROPE = (112, 72, 38), (70, 56, 44)


def between(keys, frame):
    """Values for a frame, from lines (frame, values...), by smooth steps."""
    frames = [key[0] for key in keys]
    i = min(max(np.searchsorted(frames, frame, "right") - 1, 0), len(keys) - 2)
    t = min(max((frame - frames[i]) / (frames[i + 1] - frames[i]), 0), 1)
    a, b = np.array(keys[i][1:], float), np.array(keys[i + 1][1:], float)
    return a + (b - a) * t * t * (3 - 2 * t)


def balloon(u, v, turn, colours):
    """Colour and cover at places u, v of a balloon's box, both 0 to 1."""
    two, one, band = (np.array(colour, float) for colour in colours)
    x = 2 * u - 1
    # Half the width of the envelope: a half circle, then towards the basket.
    below = np.clip((v - 0.4) / 0.45, 0, 1)
    half = np.where(v < 0.4, np.sqrt(np.clip(1 - ((0.4 - v) / 0.4) ** 2, 0, 1)),
                    1 - 0.86 * below ** 1.6)
    inside = (np.abs(x) < half) & (v < 0.85)
    angle = np.arcsin(np.clip(x / np.maximum(half, 1e-6), -1, 1))
    gore = np.floor((angle + turn) / np.pi * 8).astype(int)
    colour = np.where((gore % 2 == 0)[..., None], two, one)
    zigzag = 0.03 * np.abs(((angle + turn) / np.pi * 8) % 1 - 0.5)
    on_band = (np.abs(v + zigzag - 0.42) < 0.05) | (np.abs(v - zigzag - 0.12) < 0.015)
    colour = np.where(on_band[..., None], band, colour)
    light = 0.5 + 0.5 * np.cos(angle + 0.7) * (1.05 - 0.45 * v)
    colour = colour * (0.35 + 0.75 * np.clip(light, 0, 1))[..., None]
    basket = (np.abs(x) < 0.16) & (v > 0.91)
    weave = 0.8 + 0.25 * np.sin(u * 300) * np.sin(v * 260)
    colour = np.where(basket[..., None], np.array(BASKET) * weave[..., None], colour)
    ropes = (np.abs(np.abs(x) - 0.145) < 0.012) & (v >= 0.85) & (v <= 0.91)
    colour = np.where(ropes[..., None], np.array(ROPE), colour)
    return colour, inside | basket | ropes


def paste_balloon(picture, box, turn, colours, haze):
    """Draws a balloon into an array of 3 channels; `haze` is the share of air's colour."""
    x, y, w, h = box
    left, top = int(np.floor(x)), int(np.floor(y))
    right, bottom = int(np.ceil(x + w)), int(np.ceil(y + h))
    at_x = (left + (np.arange((right - left) * FINE) + 0.5) / FINE - x) / w
    at_y = (top + (np.arange((bottom - top) * FINE) + 0.5) / FINE - y) / h
    u, v = np.meshgrid(at_x, at_y)
    colour, cover = balloon(u, v, turn, colours)
    colour = colour * (1 - haze) + np.array([150, 180, 214]) * haze
    cover = (cover & (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1)).astype(float)
    shape = (bottom - top, FINE, right - left, FINE)
    alpha = cover.reshape(shape).mean((1, 3))
    layer = (colour * cover[..., None]).reshape(*shape, 3).mean((1, 3))
    rows, columns = slice(max(top, 0), min(bottom, HEIGHT)), slice(max(left, 0), min(right, WIDTH))
    part = (slice(rows.start - top, rows.stop - top), slice(columns.start - left,
                                                            columns.stop - left))
    picture[rows, columns] = picture[rows, columns] * (1 - alpha[part][..., None]) + layer[part]


def fir(draw, x, foot, height, random):
    """A tree of ragged branches, the lower ones longer."""
    draw.rectangle([x - height * 0.015, foot - height, x + height * 0.015, foot],
                   fill=(46, 36, 28, 255))
    for i in range(170):
        t = (i / 170) ** 0.8
        y = foot - height * (1 - t)
        reach = height * (0.015 + 0.2 * t) * random.uniform(0.75, 1.1)
        shade = random.uniform(0.7, 1.25)
        colour = tuple(int(c * shade) for c in (26, 50, 34)) + (255,)
        for side in (-1, 1):
            tip = (x + side * reach, y + height * random.uniform(0.03, 0.06))
            draw.polygon([(x, y - height * 0.01), tip, (x, y + height * 0.05)], fill=colour)


def trees(random):
    """The foreground, wider than a frame, with alpha."""
    size = (900, HEIGHT)
    layer = Image.new("RGBA", [FINE * n for n in size], (26, 50, 34, 0))
    draw = ImageDraw.Draw(layer)
    for x, height in ((40, 150), (110, 210), (470, 330), (520, 170), (585, 120), (800, 230),
                      (860, 180)):
        fir(draw, FINE * x, FINE * (HEIGHT + 10), FINE * height, random)
    return layer.resize(size, Image.BOX).filter(ImageFilter.GaussianBlur(0.6))


def window(layer, x, y):
    """The part of a layer with that upper left corner, which need not be whole."""
    return layer.transform((WIDTH, HEIGHT), Image.AFFINE, (1, 0, x, 0, 1, y), Image.BICUBIC)


def scene(mountain):
    """For each frame the picture and the box."""
    random = np.random.default_rng(6)
    front = trees(random)
    for frame in range(FRAMES):
        sway = np.array([3 * np.sin(frame * 0.11) + np.sin(frame * 0.37), 2 * np.sin(frame * 0.17)])
        pan = between(((0, 4, 210), (FRAMES - 1, 154, 40)), frame)
        back = pan + sway
        picture = np.array(window(mountain, *back), float)
        far = (392 - back[0], 210 - back[1] - 0.1 * frame, 30, 39)
        paste_balloon(picture, far, 0.4, (BLUE, WHITE, YELLOW), 0.35)
        # Centre and height of the balloon, seen from the camera.
        cx, cy, high = between(((0, 130, 236, 62), (70, 250, 170, 84), (150, 375, 150, 104),
                                (210, 540, 128, 150), (FRAMES - 1, 470, 140, 185)), frame)
        cx, cy = np.array([cx, cy]) - sway
        wide = 0.78 * high
        box = (cx - wide / 2, cy - high / 2, wide, high)
        paste_balloon(picture, box, 0.004 * frame, (RED, YELLOW, CREAM), 0.05)
        leaves = np.array(window(front, 20 + 1.6 * (back[0] - 4), 0.2 * sway[1]), float)
        alpha = leaves[..., 3:] / 255
        picture = picture * (1 - alpha) + leaves[..., :3] * alpha
        picture += random.normal(0, 1.5, picture.shape)
        yield np.clip(picture + 0.5, 0, 255).astype(np.uint8), box


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "mountain.png")
        subprocess.run([sys.argv[1], HERE / "mountain.png", large, "--scale", "4"], check=True)
        mountain = Image.open(large).convert("RGB")
    encoder = subprocess.Popen(
        ["ffmpeg", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24",
         "-s", f"{WIDTH}x{HEIGHT}", "-r", str(RATE), "-i", "-", "-c:v", "libx264", "-preset",
         "veryslow", "-crf", "25", "-pix_fmt", "yuv420p", "-movflags", "+faststart",
         "-fflags", "+bitexact", "-flags:v", "+bitexact", "-threads", "1",
         HERE / "balloon.mp4"], stdin=subprocess.PIPE)
    lines = ["frame,x,y,w,h"]
    for frame, (picture, box) in enumerate(scene(mountain)):
        encoder.stdin.write(picture.tobytes())
        lines.append(",".join([str(frame), *(f"{value:.2f}" for value in box)]))
    encoder.stdin.close()
    if encoder.wait() != 0:
        raise SystemExit("ffmpeg failed")
    (HERE / "balloon.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
