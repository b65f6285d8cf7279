#!/usr/bin/env node
// Runs built networks on ONNX Runtime and writes its outputs and manifest.json beside this file.
//
//   npm install --ignore-scripts onnxruntime-node            (anywhere)
//   NODE_PATH=<there>/node_modules node tests/golden/make_goldens.js build/bin/build-model
//
// README.md describes the format.
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const ort = require('onnxruntime-node');
const ortVersion = require('onnxruntime-node/package.json').version;

const picture = (shape) => ({ name: 'input', dtype: 'float32', shape });
const coefficients = { name: 'coefficients', dtype: 'int16', shape: [1, 65536] };
const patch = (name, size) => ({ name, dtype: 'float32', shape: [1, 3, size, size] });

const cases = [
  { network: 'srvgg-x4v3', seed: 7, inputs: [picture([1, 3, 12, 10])] },
  { network: 'srvgg-animevideov3', seed: 7, inputs: [picture([2, 3, 5, 7])] },
  { network: 'span-x4', seed: 7, inputs: [picture([1, 3, 12, 10])] },
  { network: 'span-x4', seed: 7, storage: 'float16', inputs: [picture([1, 3, 7, 13])] },
  { network: 'rrdbnet-x4plus-anime-6b', seed: 7, inputs: [picture([1, 3, 12, 10])] },
  { network: 'f5dctnet-v1', seed: 7, inputs: [coefficients] },
  { network: 'f5dctnet-v1s', seed: 7, inputs: [coefficients] },
  { network: 'f5dctnet-v1ss', seed: 7, inputs: [coefficients] },
  { network: 'siamese-two-tower', seed: 7, inputs: [patch('template', 128), patch('search', 256)] },
  { model: 'models/weights/default-x2.onnx', inputs: [picture([1, 3, 12, 10])] },
  { model: 'models/weights/default-x4.onnx', inputs: [picture([1, 3, 12, 10])] },
  { model: 'models/weights/default-x4-restore.onnx', inputs: [picture([1, 3, 12, 10])] },
];

// The inputs' formulas are exact, so that every language gives the same values.
function hash(i) {
  let h = (i + 1) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b) >>> 0;
  return (h ^ (h >>> 16)) >>> 0;
}
const fills = {
  float32: (n) => Float32Array.from({ length: n }, (_, i) => (hash(i) >>> 8) / 16777216),
  int16: (n) => Int16Array.from({ length: n }, (_, i) => (hash(i) & 7) - ((hash(i) >>> 8) & 7)),
};

function build(c, folder) {
  const root = path.join(__dirname, '..', '..');
  if (c.model) return path.join(root, c.model);
  const file = path.join(folder, 'model.onnx');
  const args = [c.network, file, '--seed', String(c.seed)];
  execFileSync(process.argv[2], c.storage === 'float16' ? [...args, '--fp16'] : args);
  return file;
}

async function run(c, folder) {
  const session = await ort.InferenceSession.create(build(c, folder), {
    graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, logSeverityLevel: 3,
  });
  const feeds = Object.fromEntries(c.inputs.map(({ name, dtype, shape }) =>
    [name, new ort.Tensor(dtype, fills[dtype](shape.reduce((a, b) => a * b)), shape)]));
  const results = await session.run(feeds);
  const label = (c.network || path.basename(c.model, '.onnx')) + (c.storage ? '-' + c.storage : '');
  const outputs = session.outputNames.map((output) => {
    const tensor = results[output];
    const file = `${label}__${output}.f32`;
    if (!tensor.data.every(Number.isFinite)) throw new Error(`${label}: not finite`);
    fs.writeFileSync(path.join(__dirname, file), Buffer.from(tensor.data.buffer));
    return { name: output, shape: tensor.dims, file };
  });
  const inputs = c.inputs.map((input) => ({ ...input, fill: 'hash' }));
  return { ...c, inputs, outputs };
}

async function main() {
  if (process.argv.length !== 3) throw new Error('usage: make_goldens.js BUILD-MODEL');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'goldens-'));
  const manifest = {
    producer: `ONNX Runtime ${ortVersion} (npm package onnxruntime-node), CPU, optimisations off`,
    command: 'node tests/golden/make_goldens.js build/bin/build-model',
    cases: [],
  };
  try {
    for (const c of cases) manifest.cases.push(await run(c, folder));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
  const json = JSON.stringify(manifest, null, 1).replace(/\[\s+([\d,\s]+?)\s+\]/g,
    (_, list) => `[${list.split(/,\s*/).join(', ')}]`);
  fs.writeFileSync(path.join(__dirname, 'manifest.json'), json + '\n');
}
main().catch((e) => { console.error(e.message); process.exit(1); });
