// Computes a model by ONNX Runtime, as WebAssembly in node:
//     node onnx_runtime.mjs MODEL.onnx IMAGES.f32 LOGITS.f32 N C H W
// Reads values of floats, writes those of the model's only output. No network is used.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const ort = createRequire(new URL('../../web/package.json', import.meta.url))('onnxruntime-web');
const [model, images, logits, ...shape] = process.argv.slice(2);
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';
const session = await ort.InferenceSession.create(readFileSync(model), { executionProviders: ['wasm'] });
const bytes = readFileSync(images);
const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const results = await session.run({ input: new ort.Tensor('float32', values, shape.map(Number)) });
const data = results.logits.data;
writeFileSync(logits, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
