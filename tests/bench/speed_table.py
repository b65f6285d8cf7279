"""The speed of onnx-bench beside ONNX Runtime's, network by network, as a Markdown table.

scripts/bench.sh calls this. Both programs run in processes of their own that alternate; each
process times several runs. The table has the least time over all processes, the median of their
medians, and the most memory that a process says it had (wait4 would count that of this one too).
"""
import argparse
import array
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Optional

sys.dont_write_bytecode = True  # no files beside the sources
import int8_table  # noqa: E402

HERE = Path(__file__).resolve().parent


class Row(NamedTuple):
    title: str
    inputs: tuple  # NAME:SHAPE each
    small: tuple  # the same, for --quick
    iterations: int
    published: Optional[str] = None  # file below models/ of the shared folder
    built: Optional[str] = None  # name for build-model
    ours: Optional[str] = None  # file below models/weights


PICTURE = ('input:1x3x256x256',)
SMALL_PICTURE = ('input:1x3x16x16',)
COEFFICIENTS = ('coefficients:1x65536',)
SEARCH = ('input:1x3x255x255',)
PATCHES = ('template:1x3x128x128', 'search:1x3x256x256')
FEATURES = ('input1:1x48x8x8', 'input2:1x48x16x16')
WIDE_FEATURES = ('input1:1x96x8x8', 'input2:1x96x16x16')
ROWS = (
    Row('realesr-general-x4v3, 256x256', PICTURE, SMALL_PICTURE, 4, 'x4v3.onnx', 'srvgg-x4v3'),
    Row('default-x4, 256x256', PICTURE, SMALL_PICTURE, 10, ours='default-x4.onnx'),
    Row('realesr-animevideov3-x2, 256x256', PICTURE, SMALL_PICTURE, 5, 'animevideov3-x2.onnx',
        'srvgg-animevideov3'),
    Row('SPAN x4, 256x256', PICTURE, SMALL_PICTURE, 6, 'spanx4.onnx', 'span-x4'),
    Row('RealESRGAN_x4plus, 64x64', ('input:1x3x64x64',), ('input:1x3x8x8',), 4,
        built='rrdbnet-x4plus'),
    Row('F5DCTNet v1', COEFFICIENTS, COEFFICIENTS, 10, built='f5dctnet-v1'),
    Row('F5DCTNet v1ss', COEFFICIENTS, COEFFICIENTS, 30, built='f5dctnet-v1ss'),
    *(row for version, features in ((1, FEATURES), (2, FEATURES), (3, WIDE_FEATURES))
      for row in (
          Row(f'NanoTrack v{version} backbone, 255x255', SEARCH, SEARCH, 100,
              published=f'nanotrack/nanotrackv{version}_backbone.onnx'),
          Row(f'NanoTrack v{version} head', features, features, 200,
              published=f'nanotrack/nanotrackv{version}_head.onnx'))),
    Row('Two-tower tracker', PATCHES, PATCHES, 30, built='siamese-two-tower'),
)
INT8 = 'int8'  # the table of quantised networks, which is another
# The second is compared with the first: both enlarge the same input four times.
COMPARED = ROWS[0], ROWS[1]
# What a tracker runs for each frame: backbone and head.
TRACKERS = [(ROWS[i], ROWS[i + 1]) for i, row in enumerate(ROWS) if row.title.endswith('255x255')]
# The most that an output may differ, root mean square relative to its own. Wrong results differ by
# much more, right ones by up to 1e-3 (SPAN), since noise drives networks out of their range.
TOLERANCE = 1e-2


class Model(NamedTuple):
    path: Path
    note: str


def find_model(row, shared, build, folder):
    """The published network if it is there, else the equivalent one with random weights."""
    if row.ours:
        return Model(HERE.parents[1] / 'models/weights' / row.ours, '')
    if row.published and (shared / 'models' / row.published).exists():
        return Model(shared / 'models' / row.published, '')
    if not row.built:
        return None
    path = folder / f'{row.built}.onnx'
    subprocess.run([build / 'bin/build-model', row.built, path], check=True)
    return Model(path, f' ({row.built}, random weights)')


class Program(NamedTuple):
    command: list
    environment: dict = {}

    def run(self, *arguments):
        """What one process reports, as JSON."""
        command = [*map(str, self.command), *map(str, arguments)]
        process = subprocess.run(command, stdout=subprocess.PIPE,
                                 env={**os.environ, **self.environment})
        if process.returncode != 0:
            raise SystemExit(f'bench: failed: {" ".join(command)}')
        return json.loads(process.stdout)

    def measure(self, model, inputs, *options):
        inputs = [argument for spec in inputs for argument in ('--input', spec)]
        return self.run(model, *inputs, *options)


def outputs_agree(ours, theirs):
    """Whether two folders hold the same names and, nearly, the same values."""
    names = sorted(path.name for path in ours.iterdir())
    if not names or names != sorted(path.name for path in theirs.iterdir()):
        return False
    for name in names:
        a, b = (array.array('f', (folder / name).read_bytes()) for folder in (ours, theirs))
        error, size = sum((x - y) ** 2 for x, y in zip(a, b)), sum(y * y for y in b)
        # NaN is not within the tolerance either.
        if len(a) != len(b) or not error <= TOLERANCE ** 2 * size:
            return False
    return True


def number(value):
    return f'{value:.0f}' if value >= 100 else f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def check_outputs(row, model, inputs, programs):
    """Fast and wrong is not fast."""
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder, str(i)) for i in range(len(programs))]
        for program, dump in zip(programs, folders):
            program.measure(model.path, inputs, '--dump', dump)
        if not outputs_agree(*folders):
            raise SystemExit(f'bench: {row.title}: the outputs differ')


def measure_line(row, model, programs, threads, arguments):
    """The cells of one line of the table, and the least times in milliseconds."""
    inputs = row.small if arguments.quick else row.inputs
    options = ['--threads', threads, '--iters', 1 if arguments.quick else row.iterations,
               '--warmup', 0 if arguments.quick else 1]
    if len(programs) == 2:
        check_outputs(row, model, inputs, programs)
    reports = [[] for _ in programs]
    for _ in range(arguments.rounds):
        for program, list_ in zip(programs, reports):
            list_.append(program.measure(model.path, inputs, *options))

    def column(statistic, field):
        return [statistic(report[field] for report in list_) for list_ in reports]

    least = column(min, 'min_ms')
    cells = [row.title + model.note, threads]
    for minimum, median in zip(least, column(statistics.median, 'p50_ms')):
        cells += [number(minimum), number(median)]
    if len(programs) == 2:
        cells.append(f'{least[1] / least[0]:.2f}')
    cells += map(number, column(min, 'load_ms'))
    cells += [number(peak / 2**20) for peak in column(max, 'peak_rss_bytes')]
    return cells, least


def comparison(times, threads):
    """What the times (row and threads to milliseconds) say of the rows that are compared."""
    ratios = {n: times[COMPARED[0], n][0] / times[COMPARED[1], n][0]
              for n in threads if all((row, n) in times for row in COMPARED)}
    return [f'{COMPARED[1].title}: {ratio:.2f} times as fast as {COMPARED[0].title}, in pixels a '
            f'second, with {n} thread{"s" * (n > 1)}.' for n, ratio in ratios.items()]


def tracker_lines(times, threads, names):
    """What the networks of each tracker take for a frame, in sum."""
    lines = []
    for rows in TRACKERS:
        for n in threads:
            if not all((row, n) in times for row in rows):
                continue
            sums = [sum(values) for values in zip(*(times[row, n] for row in rows))]
            line = f'{rows[0].title.split(" backbone")[0]}, a frame, {n} thread{"s" * (n > 1)}: '
            line += ', '.join(f'{name} {number(ms)} ms' for name, ms in zip(names, sums))
            if len(sums) == 2:
                line += f', {sums[1] / sums[0]:.2f} times as long'
            lines.append(line + '.')
    return lines


def machine():
    names = [line.split(':', 1)[1].strip()
             for line in Path('/proc/cpuinfo').read_text().splitlines()
             if line.startswith('model name')]
    return f'{names[0] if names else os.uname().machine}, {len(os.sched_getaffinity(0))} CPUs'


def positive(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(prog='scripts/bench.sh', description=__doc__.split('\n')[0])
    parser.add_argument('--build', type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument('--onnxruntime', type=Path, help=argparse.SUPPRESS)
    parser.add_argument('--quick', action='store_true',
                        help='one short run of each network: a test of this script')
    parser.add_argument('--rounds', type=positive, default=3, help='processes a line (default 3)')
    parser.add_argument('--threads', type=positive, action='append',
                        help='may be repeated (default 1 and 2)')
    parser.add_argument('--only', default='', help='networks whose name holds this')
    parser.add_argument('--out', type=Path, help='default: bench.md in the build folder')
    arguments = parser.parse_args()
    titles = [row.title for row in ROWS] + [INT8]
    if not any(arguments.only in title for title in titles):
        parser.error(f'--only {arguments.only}: there are ' + '; '.join(titles))
    if arguments.quick:
        arguments.rounds = 1
    arguments.threads = arguments.threads or [1, 2]
    name = 'bench-quick.md' if arguments.quick else 'bench.md'
    arguments.out = arguments.out or arguments.build / name
    return arguments


def table(headers, lines):
    rows = [headers, ['---'] * len(headers), *lines]
    return ['| ' + ' | '.join(map(str, row)) + ' |' for row in rows]


def main():
    arguments = parse_arguments()
    shared = Path(os.environ.get('TESSERA_SHARED', HERE.parents[2] / 'shared'))
    programs = [Program([arguments.build / 'bin/onnx-bench', '--json'])]
    names = ['Tessera']
    notes = ['One short run of small inputs: no measurement.'] if arguments.quick else []
    notes += [f'{machine()}; {datetime.date.today()}; {arguments.rounds} processes a line. '
              'Milliseconds for one run: the least, and the median. Loading includes planning, '
              'for Tessera.']
    if arguments.onnxruntime:
        modules = arguments.onnxruntime.resolve()
        node = {'NODE_PATH': str(modules)}
        programs.append(Program(['node', HERE / 'ort_bench.js'], node))
        version = json.loads((modules / 'onnxruntime-node/package.json').read_text())['version']
        names.append(f'ONNX Runtime {version}')
        empty = programs[1].run()
        notes.append(f'Peak memory is that of the process; Node.js with ONNX Runtime takes '
                     f'{empty["peak_rss_bytes"] / 2**20:.0f} MB of it before a network is loaded.')
    headers = ['network, input', 'threads']
    headers += [header for name in names for header in (f'{name}, ms', 'median')]
    headers += ['ratio'] if len(names) == 2 else []
    headers += [f'{name}, {what}' for what in ('load ms', 'peak MB') for name in names]

    lines, missing, times = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if arguments.only not in row.title:
                continue
            model = find_model(row, shared, arguments.build, Path(folder))
            if model is None:
                missing.append(row.title)
                continue
            for threads in arguments.threads:
                cells, times[row, threads] = measure_line(row, model, programs, threads, arguments)
                lines.append(cells)
                print('bench:', *lines[-1], file=sys.stderr, flush=True)
    if missing:
        notes.append('Not measured, for want of their files: ' + '; '.join(missing) + '.')
    text = '\n'.join([*notes, '', *(table(headers, lines) if lines else [])]) + '\n'
    if compared := (comparison(times, arguments.threads)
                    + tracker_lines(times, arguments.threads, names)):
        text += '\n' + '\n'.join(compared) + '\n'
    if arguments.only in INT8:
        int8 = int8_table.measure(arguments.build, shared, programs[0],
                                  programs[1] if len(programs) == 2 else None, arguments.rounds,
                                  arguments.quick)
        text += '\n'.join(['', 'With 8-bit integers, one thread:', '',
                           *table(int8_table.HEADERS, int8)]) + '\n'
    print(text, end='', flush=True)
    arguments.out.write_text(text)


if __name__ == '__main__':
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f'bench: {error}')
