#!/usr/bin/env node
// onnx-bench on ONNX Runtime (npm package onnxruntime-node, CPU): takes its options below and
// prints the object that `onnx-bench --json` prints, as far as it goes.
//
//   NODE_PATH=<folder>/node_modules node ort_bench.js MODEL --input NAME:1x3x64x64 [--input ...]
//       [--threads N] [--iters K] [--warmup W] [--dump FOLDER]
//
// Without any of them: what there is to say without a network.
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

// The noise of apps/bench_input.h: what becomes of u in [0, 1), by the type of the input.
const signed = (u) => Math.floor(16 * u) - 8;
const unsigned = (u) => Math.floor(16 * u);
const types = {
  float32: [Float32Array, (u) => u],
  float64: [Float64Array, (u) => u],
  int8: [Int8Array, signed],
  int16: [Int16Array, signed],
  int32: [Int32Array, signed],
  int64: [BigInt64Array, (u) => BigInt(signed(u))],
  uint8: [Uint8Array, unsigned],
  uint16: [Uint16Array, unsigned],
  uint32: [Uint32Array, unsigned],
  uint64: [BigUint64Array, (u) => BigInt(unsigned(u))],
  bool: [Uint8Array, (u) => Math.floor(2 * u)],
};

function parseOptions(argv) {
  const options = { model: argv[0], input: [], threads: 1, iters: 1, warmup: 0, dump: null };
  for (let i = 1; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, ''), value = argv[i + 1];
    if (name === 'input') options.input.push(value);
    else if (name === 'dump') options.dump = value;
    else if (['threads', 'iters', 'warmup'].includes(name)) options[name] = Number(value);
    else throw new Error(`unknown option ${argv[i]}`);
  }
  return options;
}

function makeInput(spec, session) {
  const match = /^(.+):(\d+(?:x\d+)*)$/.exec(spec);
  if (!match) throw new Error(`--input ${spec}: want NAME:1x3x64x64`);
  const [, name, dims] = match;
  const declared = session.inputMetadata.find((input) => input.name === name);
  if (!declared) throw new Error(`--input ${name}: the model has no such input`);
  if (!types[declared.type]) throw new Error(`inputs of type ${declared.type} are not supported`);
  const [List, fromUniform] = types[declared.type];
  const shape = dims.split('x').map(Number);
  const values = new List(shape.reduce((a, b) => a * b, 1));
  let x = 0x2545f491;
  for (let i = 0; i < values.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    values[i] = fromUniform((x >>> 0) / 4294967296);
  }
  return [name, new ort.Tensor(declared.type, values, shape)];
}

function dump(outputs, folder) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, tensor] of outputs) {
    const file = path.join(folder, name.replace(/[^\w.-]/g, '_') + '.f32');
    fs.writeFileSync(file, Buffer.from(Float32Array.from(tensor.data, Number).buffer));
  }
}

// As onnx-bench reads it; process.resourceUsage() would count the memory of the parent process too.
function peakRssBytes() {
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(status)[1]) * 1024;
}

const msSince = (start) => Number(process.hrtime.bigint() - start) / 1e6;

async function main() {
  if (process.argv.length === 2) {
    console.log(JSON.stringify({ peak_rss_bytes: peakRssBytes() }));
    return;
  }
  const options = parseOptions(process.argv.slice(2));
  const loadStart = process.hrtime.bigint();
  const session = await ort.InferenceSession.create(options.model, {
    intraOpNumThreads: options.threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
  const loadMs = msSince(loadStart);
  const feeds = Object.fromEntries(options.input.map((spec) => makeInput(spec, session)));
  const runsMs = [];
  let results;
  for (let i = 0; i < options.warmup + options.iters; i++) {
    const start = process.hrtime.bigint();
    results = await session.run(feeds);
    if (i >= options.warmup) runsMs.push(msSince(start));
  }
  const peak = peakRssBytes();
  runsMs.sort((a, b) => a - b);
  const outputs = session.outputNames.map((name) => [name, results[name]]);
  if (options.dump) dump(outputs, options.dump);
  console.log(JSON.stringify({
    model: path.basename(options.model),
    threads: options.threads,
    load_ms: loadMs,
    min_ms: runsMs[0],
    p50_ms: runsMs[runsMs.length >> 1],
    mean_ms: runsMs.reduce((a, b) => a + b) / runsMs.length,
    iterations: runsMs.length,
    peak_rss_bytes: peak,
    outputs: outputs.map(([name, { type, dims }]) => ({ name, dtype: type, shape: dims })),
  }));
}
main().catch((e) => { console.error(`ort_bench: ${e.message}`); process.exit(1); });
