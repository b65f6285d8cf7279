"""Trains a network of network.py; see train.sh for the recipes.

Runs for --steps or --minutes, whichever ends first, with a cosine learning rate; started again
without --new-cycle it goes on from the checkpoint, with it a new cycle starts from the averaged
weights. Checkpoints and the best export lie in --directory. SIGTERM and SIGINT leave a checkpoint.
"""

import argparse
import copy
import json
import math
import os
import signal
import time

import torch

import data
import evaluate
import export
import metrics
import network
import optimizer
import refit


LUMA = torch.tensor([0.257, 0.504, 0.098])[:, None, None]  # as metrics.py takes it
COLOUR = 0.2  # the weight of all colours beside luma
FLAT = 0.5 / 255  # errors that do not matter


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--export", help="also write the best weights here (.f32)")
    parser.add_argument("--start", help="model (.onnx or .f32) whose weights a new training starts from, "
                        "its last convolution refitted if it was made for another scale or for damage")
    parser.add_argument("--scale", type=int, default=4)
    parser.add_argument("--damaged", action="store_true",
                        help="train on blurred, noisy JPEG pictures")
    parser.add_argument("--features", type=int, default=48)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60000)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--patch", type=int, default=40, help="side at low resolution")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--final-rate", type=float, default=2e-6)
    parser.add_argument("--bfloat16-until", type=float, default=0.7, metavar="SHARE",
                        help="of the cycle; then float32, which takes nearly twice as long")
    parser.add_argument("--step-loss", type=float, default=0.4,
                        help="weight of the error of differences between neighbours: without it "
                        "the steps of the nearest-neighbour part stay visible in smooth areas")
    parser.add_argument("--loss", choices=("l1", "rms"), default="l1",
                        help="l1: mean error of the colours; rms: root mean square error of each "
                        "patch, mostly that of its luma")
    parser.add_argument("--natural-colours", action="store_true",
                        help="do not permute red, green and blue")
    parser.add_argument("--adam", action="store_true", help="for the inner kernels too")
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--average", type=float, default=0.999)
    parser.add_argument("--check-every", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2, help="at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--new-cycle", action="store_true")
    parser.add_argument("--watch", action="append", default=[], metavar="PICTURE",
                        help="to report on; never used to choose weights")
    return parser.parse_args()


class Pace:
    """Sets the number of threads: at the lowest priority, on a busy machine, threads that wait for
    each other can be slower than one alone. Tries both every `BLOCK` steps, keeps the faster, by
    averages over several trials, since what else runs changes by the second."""

    BLOCK, TRIAL = 80, 10

    def __init__(self, threads):
        self.choices, self.step, self.times = sorted({1, threads}), 0, {}

    def next(self):
        phase = self.step % self.BLOCK // self.TRIAL
        if self.step % self.TRIAL == 0:
            now = time.time()
            if 0 < phase <= len(self.choices):
                number = self.choices[phase - 1]
                time_taken = now - self.start
                self.times[number] = 0.7 * self.times.get(number, time_taken) + 0.3 * time_taken
            self.start = now
            fastest = min(self.choices, key=lambda n: self.times.get(n, 0))
            self.threads = self.choices[phase] if phase < len(self.choices) else fastest
            torch.set_num_threads(self.threads)
        self.step += 1

    def report(self):
        """Seconds for a step with each number of threads."""
        return ", ".join("%d thread%s: %.2f s" % (n, "s" * (n > 1), t / self.TRIAL)
                         for n, t in self.times.items())


class Trainer:
    def __init__(self, args):
        self.args = args
        self.pace = Pace(args.threads)
        self.stop = False
        torch.manual_seed(args.seed)
        self.config = {k: getattr(args, k) for k in ("features", "blocks", "scale")}
        self.net = network.Network(**self.config).to(memory_format=torch.channels_last)
        self.checkpoint = os.path.join(args.directory, "last.pt")
        pairs = data.training_pairs(args.scale, args.directory)
        if args.start and not os.path.exists(self.checkpoint):
            other_scale = self.net.start_from(export.read_any(args.start))
            if other_scale or args.damaged:
                refit.refit([t.detach() for t in self.net.plain()], pairs[::3], args.scale,
                            args.seed, args.damaged)
        self.average = copy.deepcopy(self.net)
        inner = [] if args.adam else [conv.weight for conv in self.net.convs[1:-1]]
        chosen = {id(kernel) for kernel in inner}
        others = [p for p in self.net.parameters() if id(p) not in chosen]
        self.optimizers = [torch.optim.Adam(others, lr=args.rate, betas=(0.9, 0.99))]
        if inner:
            self.optimizers.append(optimizer.Muon(inner, args.rate))
        # step counts all steps ever taken; cycle_step and spent (seconds) those of this cycle.
        self.step, self.cycle_step, self.spent, self.best = 0, 0, 0.0, -math.inf
        if os.path.exists(self.checkpoint):
            self.load()
        self.sampler = data.Sampler(pairs, args.scale, args.patch, args.seed + self.step,
                                    damaged=args.damaged,
                                    permute=not args.natural_colours)
        self.held_out = data.held_out(args.scale, args.damaged)
        self.watched = [evaluate.read_picture(path, args.scale, args.damaged)
                        for path in args.watch]

    def load(self):
        state = torch.load(self.checkpoint, map_location="cpu")
        self.step, self.best = state["step"], state["best"]
        self.average.load_state_dict(state["average"])
        if self.args.new_cycle:
            self.net.load_state_dict(state["average"])
            return
        self.net.load_state_dict(state["weights"])
        for mine, stored in zip(self.optimizers, state["optimizers"], strict=True):
            mine.load_state_dict(stored)
        self.cycle_step, self.spent = state["cycle_step"], state["spent"]

    def save(self, psnr):
        state = {"network": self.config, "damaged": self.args.damaged,
                 "weights": self.net.state_dict(), "average": self.average.state_dict(),
                 "optimizers": [o.state_dict() for o in self.optimizers],
                 "step": self.step, "cycle_step": self.cycle_step, "spent": self.spent,
                 "best": self.best, "psnr": psnr}
        torch.save(state, self.checkpoint + ".tmp")
        os.replace(self.checkpoint + ".tmp", self.checkpoint)

    def progress(self):
        """Share of this cycle that is done."""
        args = self.args
        return max(self.cycle_step / args.steps, self.spent / (60 * args.minutes))

    def rate(self):
        args = self.args
        warm = min(1.0, (self.cycle_step + 1) / args.warm_up)
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, self.progress())))
        return warm * (args.final_rate + (args.rate - args.final_rate) * cosine)

    def loss(self, error):
        weight = self.args.step_loss
        if self.args.loss == "l1":
            steps = error.diff(dim=2).abs().mean() + error.diff(dim=3).abs().mean()
            return error.abs().mean() + weight * steps
        luma = (error * LUMA).sum(1)
        square = luma.square().mean((1, 2)) + COLOUR * error.square().mean((1, 2, 3))
        steps = luma.diff(dim=1).square().mean((1, 2)) + luma.diff(dim=2).square().mean((1, 2))
        return (square + weight * steps + FLAT ** 2).sqrt().mean()

    def train_step(self):
        args = self.args
        for method in self.optimizers:
            for group in method.param_groups:
                group["lr"] = self.rate()
        high, low = (torch.from_numpy(a) for a in self.sampler.batch(args.batch))
        self.net.zero_grad()
        low = low.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.progress() < args.bfloat16_until):
            error = self.net(low) - high
        self.loss(error).backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        for method in self.optimizers:
            method.step()
        with torch.no_grad():
            keep = min(args.average, 1 - 1 / (self.step + 1))
            torch._foreach_mul_(list(self.average.parameters()), keep)
            torch._foreach_add_(list(self.average.parameters()), list(self.net.parameters()),
                                alpha=1 - keep)
        self.step += 1
        self.cycle_step += 1
        return error.abs().mean().item()

    def check(self):
        """Measures the averaged weights; exports them where the held-out mean has improved."""
        args, tensors = self.args, [t.detach() for t in self.average.plain()]
        psnr = {"held-out": evaluate.held_out_psnr(tensors, self.held_out, args.scale)}
        for name, high, low in self.watched:
            result = evaluate.upscale(tensors, low, args.scale)
            psnr[name] = metrics.compare(result, high, args.scale)[0]
        psnr = {k: round(v, 3) for k, v in psnr.items()}
        if psnr["held-out"] > self.best:
            self.best = psnr["held-out"]
            facts = dict(self.config, steps=self.step, psnr=psnr)
            for path in (os.path.join(args.directory, "best.f32"), args.export):
                if path:
                    export.write(path, tensors, facts)
        return psnr

    def run(self):
        args, losses, last = self.args, [], time.time()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        psnr = self.check() if self.step == 0 and args.start else {}
        if psnr:
            print("at the start", json.dumps(psnr), flush=True)
        while self.progress() < 1 and not self.stop:
            self.pace.next()
            losses.append(self.train_step())
            now = time.time()
            self.spent, last = self.spent + now - last, now
            if self.cycle_step % args.check_every == 0 or self.progress() >= 1:
                psnr = self.check()
                self.save(psnr)
                print("step %d, %.1f min, %.0f%%, rate %.2e, loss %.5f, %s, %s" % (
                    self.step, self.spent / 60, 100 * self.progress(), self.rate(),
                    sum(losses) / len(losses), self.pace.report(), json.dumps(psnr)),
                    flush=True)
                losses = []
        if self.stop:
            self.save(psnr)

    def on_signal(self, *_):
        self.stop = True


def main():
    args = arguments()
    os.makedirs(args.directory, exist_ok=True)
    Trainer(args).run()


if __name__ == "__main__":
    main()
