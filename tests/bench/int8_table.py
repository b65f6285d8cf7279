"""What 8-bit integers bring: speed, memory and agreement with float32, as a Markdown table.

speed_table.py calls this. All with one thread: times are the least of several processes that
alternate.
"""
import array
import random
import subprocess
import sys
import tempfile
from collections import Counter
from math import inf, log10
from pathlib import Path
from typing import NamedTuple

HEADERS = ['what', 'int8', 'compared with', 'ratio or difference', 'wanted']
SEQUENCES = 'crossing', 'dog1', 'car4'
ROOT = Path(__file__).resolve().parents[2]
CLIP = ROOT / 'samples/balloon.mp4'
BOXES = ROOT / 'samples/balloon.csv'
PICTURE = ROOT / 'samples/mountain.png'


class Setting(NamedTuple):
    build: Path  # folder
    shared: Path
    folder: Path  # for files that are made
    ours: object  # speed_table's Program of onnx-bench
    theirs: object  # of ONNX Runtime, or None
    rounds: int
    quick: bool

    def call(self, program, *arguments):
        command = [str(a) for a in (self.build / 'bin' / program, *arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f'bench: failed: {" ".join(command)}: {done.stderr.strip()}')
        return done.stdout

    def network(self, name, *, ours=None):
        """The published network, or what stands for it in a quick run; None if it is not there."""
        path = self.shared / 'models' / name
        if not self.quick:
            return path if path.exists() else None
        return ROOT / 'models/weights' / ours if ours else None

    def images(self):
        """The pictures that results are compared on, and that networks are calibrated with."""
        if self.quick:
            return [PICTURE]
        folder = self.shared / 'images'
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def quantize_upscaler(self, model):
        out = self.folder / f'{model.stem}-int8.onnx'
        if not out.exists():
            size = ('--samples', 1, '--tile', 32) if self.quick else ()
            self.call('quantize', model, out, '--calib', PICTURE if self.quick
                      else self.shared / 'images', *size)
        return out

    def times(self, cases, iterations):
        """The reports with the least time of each case: (program, model, inputs, options)."""
        best = [None] * len(cases)
        rounds, iterations = (1, 1) if self.quick else (self.rounds, iterations)
        for _ in range(rounds):
            for i, (program, model, inputs, *options) in enumerate(cases):
                report = program.measure(model, inputs, '--threads', 1, '--iters', iterations,
                                         '--warmup', 0 if self.quick else 3, *options)
                if best[i] is None or report['min_ms'] < best[i]['min_ms']:
                    best[i] = report
        return best


def ms(value):
    return f'{value:.2f} ms'


def tracker_speed(setting):
    """nanotrackv2, backbone and head in sum, against ONNX Runtime."""
    backbone = setting.network('nanotrack/nanotrackv2_backbone.onnx')
    head = setting.network('nanotrack/nanotrackv2_head.onnx')
    if not (backbone and head and setting.theirs):
        return
    backbone8, head8 = quantize_tracker(setting, backbone, head)
    search = 'input:1x3x255x255',
    features = 'input1:1x48x8x8', 'input2:1x48x16x16'
    cases = [(setting.ours, backbone8, search), (setting.ours, head8, features),
             (setting.theirs, backbone, search), (setting.theirs, head, features),
             (setting.theirs, backbone8, search), (setting.theirs, head8, features)]
    t = [report['min_ms'] for report in setting.times(cases, 100)]
    ours, fp32, qdq = t[0] + t[1], t[2] + t[3], t[4] + t[5]
    yield ['nanotrackv2, backbone 255 and head', ms(ours), f'ONNX Runtime, fp32: {ms(fp32)}',
           f'{fp32 / ours:.2f}', '2.0']
    yield ['the same', ms(ours), f'ONNX Runtime, the same QDQ files: {ms(qdq)}',
           f'{qdq / ours:.2f}', '6']
    others = [setting.network(f'int8/nanotrackv2_{part}_qdq.onnx') for part in ('backbone', 'head')]
    if not all(others):
        return
    cases = [(program, model, inputs) for program in (setting.ours, setting.theirs)
             for model, inputs in zip(others, (search, features))]
    t = [report['min_ms'] for report in setting.times(cases, 50)]
    ours, qdq = t[0] + t[1], t[2] + t[3]
    yield ['nanotrackv2, QDQ of another tool', ms(ours), f'ONNX Runtime, the same files: {ms(qdq)}',
           f'{qdq / ours:.2f}', '']


def quantize_tracker(setting, backbone, head):
    outs = setting.folder / 'backbone-int8.onnx', setting.folder / 'head-int8.onnx'
    if not outs[0].exists():
        setting.call('quantize', backbone, outs[0], '--head', head, '--head-out', outs[1],
                     '--calib', CLIP, '--groundtruth', BOXES)
    return outs


def chains(setting):
    """siamese-two-tower with random weights, chains of convolutions on against off."""
    model, out = setting.folder / 'two-tower.onnx', setting.folder / 'two-tower-int8.onnx'
    setting.call('build-model', 'siamese-two-tower', model)
    noise = random.Random(1)
    inputs = 'template:1x3x128x128', 'search:1x3x256x256'
    calib = []
    for name, size in ('template', 128), ('search', 256):
        path = setting.folder / f'{name}.f32'
        array.array('f', (noise.random() for _ in range(3 * size * size))).tofile(path.open('wb'))
        calib += ['--calib', f'{name}:1x3x{size}x{size}:{path}']
    setting.call('quantize', model, out, *calib)
    on, off = setting.times([(setting.ours, out, inputs),
                             (setting.ours, out, inputs, '--disable', 'stream-quantized')], 30)
    yield ['siamese-two-tower, chains streamed', ms(on['min_ms']),
           f'unstreamed: {ms(off["min_ms"])}', f'{off["min_ms"] / on["min_ms"]:.2f}', '1.3']


def upscaler_speed(setting):
    """x4v3, time and memory against our own fp32."""
    model = setting.network('x4v3.onnx', ours='default-x2.onnx')
    if not model:
        return
    out = setting.quantize_upscaler(model)
    inputs = ('input:1x3x16x16' if setting.quick else 'input:1x3x256x256'),
    int8, fp32 = setting.times([(setting.ours, out, inputs), (setting.ours, model, inputs)], 4)
    name = f'{model.stem}, {inputs[0].split("x", 2)[2]}'
    for what, field, show, wanted in (
            ('time', 'min_ms', ms, '1.0'),
            ('buffers', 'arena_bytes', megabytes, '3'),
            ('weights', 'weight_bytes', megabytes, '4'),
            ('weights as kernels keep them', 'packed_bytes', megabytes, '')):
        ratio = fp32[field] / int8[field] if int8[field] else inf
        yield [f'{name}: {what}', show(int8[field]), f'fp32: {show(fp32[field])}',
               f'{ratio:.2f}', wanted]


def megabytes(value):
    return f'{value / 2**20:.2f} MB'


def tracker_quality(setting):
    """nanotrackv2, success AUC on sequences."""
    backbone = setting.network('nanotrack/nanotrackv2_backbone.onnx')
    head = setting.network('nanotrack/nanotrackv2_head.onnx')
    sequences = [setting.shared / 'tracking/sequences' / name for name in SEQUENCES]
    if not (backbone and head and all(path.is_dir() for path in sequences)):
        return

    def auc(sequence, model, head):
        text = setting.call('track', sequence / 'frames', '--model', model, '--head', head,
                            '--init', sequence / 'init.txt', '--groundtruth', sequence / 'gt.csv',
                            '--quiet')
        return next(float(line.split(':')[1]) for line in text.splitlines() if 'AUC' in line)

    int8 = quantize_tracker(setting, backbone, head)
    scores = [(auc(s, *int8), auc(s, backbone, head)) for s in sequences]
    mean = tuple(sum(column) / len(scores) for column in zip(*scores))
    for name, (a, b) in [*zip(SEQUENCES, scores), ('mean', mean)]:
        yield [f'nanotrackv2, success AUC, {name}', f'{a:.4f}', f'fp32: {b:.4f}', f'{a - b:+.4f}',
               '-0.01']


def samples(pnm):
    """Of a binary PNM of 8 bits: all that follows the header of three numbers."""
    data = pnm.read_bytes()
    at, numbers = 2, []
    while len(numbers) < 3:
        end = at + 1
        while data[end:end + 1] not in (b' ', b'\n', b'\t', b'\r'):
            end += 1
        numbers.append(int(data[at:end]))
        at = end
    if numbers[2] != 255:
        raise SystemExit(f'bench: {pnm}: not of 8 bits')
    return data[at + 1:]


def psnr(a, b):
    counts = Counter(x - y for x, y in zip(a, b))
    error = sum(d * d * n for d, n in counts.items()) / len(a)
    return 10 * log10(255 * 255 / error) if error else inf


def upscaler_quality(setting):
    """PSNR of the 8-bit result against that of fp32."""
    for name, ours in ('x4v3.onnx', 'default-x2.onnx'), ('spanx4.onnx', None):
        model, images = setting.network(name, ours=ours), setting.images()
        if not model or not images:
            continue
        int8 = setting.quantize_upscaler(model)
        values = []
        for image in images:
            results = []
            for network in model, int8:
                out = setting.folder / f'{len(results)}.pnm'
                setting.call('upscale', image, out, '--model', network, '--bit-depth', 8,
                             '--overwrite', '--quiet')
                results.append(samples(out))
            values.append(psnr(*results))
        least = min(values)
        yield [f'{model.stem}, PSNR to fp32, {len(values)} pictures',
               f'mean {sum(values) / len(values):.1f} dB',
               f'least: {images[values.index(least)].name}', f'{least:.1f} dB', '40 dB']


def measure(build, shared, ours, theirs, rounds, quick):
    """The lines of the table."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(build, shared, Path(folder), ours, theirs, rounds, quick)
        for part in tracker_speed, chains, upscaler_speed, tracker_quality, upscaler_quality:
            for line in part(setting):
                lines.append(line)
                print('bench: int8:', *line, sep=' | ', file=sys.stderr, flush=True)
    return lines
