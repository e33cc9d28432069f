/** The WebAssembly codecs of `@jsquash`. The memory of an instance only grows, so each image gets a new instance. */
import type { Pixels } from "../canvas/mod.ts";

/** Options of the JPEG encoder (MozJPEG), except the quality. */
const JPEG_OPTIONS = {
  baseline: true,
  arithmetic: false,
  // Progressive files are a few percent smaller and take twice as long.
  progressive: false,
  optimize_coding: true,
  smoothing: 0,
  // YCbCr.
  color_space: 3,
  quant_table: 3,
  trellis_multipass: false,
  trellis_opt_zero: false,
  trellis_opt_table: false,
  trellis_loops: 1,
  auto_subsample: true,
  chroma_subsample: 2,
  separate_chroma_quality: false,
  chroma_quality: 75,
} as const;

/** Options of the WebP encoder (libwebp), except the quality; these are its defaults. */
const WEBP_OPTIONS = {
  target_size: 0,
  target_PSNR: 0,
  method: 4,
  sns_strength: 50,
  filter_strength: 60,
  filter_sharpness: 0,
  filter_type: 1,
  partitions: 0,
  segments: 4,
  pass: 1,
  show_compressed: 0,
  preprocessing: 0,
  autofilter: 0,
  partition_limit: 0,
  alpha_compression: 1,
  alpha_filtering: 1,
  alpha_quality: 100,
  lossless: 0,
  exact: 0,
  image_hint: 0,
  emulate_jpeg_size: 0,
  thread_level: 0,
  low_memory: 0,
  near_lossless: 100,
  use_delta_palette: 0,
  use_sharp_yuv: 0,
} as const;

/** Encodes a JPEG. The alpha channel is ignored. */
export async function encodeJpeg(pixels: Pixels, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const { default: load } = await import("@jsquash/jpeg/encoder");
  const module = await compiled(import.meta.resolve("@jsquash/jpeg/encoder.wasm"));
  return encodeWith(await start(load, module), pixels, { ...JPEG_OPTIONS, quality });
}

/** Encodes a WebP. */
export async function encodeWebp(pixels: Pixels, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  return encodeWith(await startWebpEncoder(), pixels, { ...WEBP_OPTIONS, quality });
}

/** Creates a decoder for single-frame WebP files. It throws for animations and damaged files. */
export async function openWebpDecoder(): Promise<(file: Uint8Array) => Pixels> {
  const { default: load } = await import("@jsquash/webp/decoder");
  const decoder = await start(load, await compiled(import.meta.resolve("@jsquash/webp/decoder.wasm")));
  return (file) => {
    const image = decoder.decode(file);
    if (image === null) throw new Error("libwebp cannot decode the file");
    const { width, height, data } = image;
    return { width, height, data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  };
}

/**
 * Starts the SIMD build, or the plain one, which takes twice as long: V8 needs SSE 4.1, which some virtual machines
 * lack.
 */
async function startWebpEncoder(): Promise<Jsquash.Encoder> {
  const fast = await compiled(import.meta.resolve("@jsquash/webp/encoder_simd.wasm")).catch(() => undefined);
  if (fast !== undefined) return await start((await import("@jsquash/webp/encoder_simd")).default, fast);
  const module = await compiled(import.meta.resolve("@jsquash/webp/encoder.wasm"));
  return await start((await import("@jsquash/webp/encoder")).default, module);
}

function encodeWith(
  encoder: Jsquash.Encoder,
  { width, height, data }: Pixels,
  options: Readonly<Record<string, number | boolean>>,
): Uint8Array<ArrayBuffer> {
  const file = encoder.encode(data, width, height, options);
  if (file === null || file.length === 0) throw new Error("the encoder returned no file");
  return file;
}

/** Compiled modules by address. */
const modules = new Map<string, Promise<WebAssembly.Module>>();

/**
 * Returns a module from its file, compiled once. The package's own loader uses fetch(), which fails in an executable.
 */
function compiled(address: string): Promise<WebAssembly.Module> {
  const cached = modules.get(address);
  if (cached !== undefined) return cached;
  const compiling = Deno.readFile(new URL(address)).then((bytes) => WebAssembly.compile(bytes));
  modules.set(address, compiling);
  return compiling;
}

async function start<T>(load: Jsquash.Loader<T>, module: WebAssembly.Module): Promise<T> {
  return await load({
    noInitialRun: true,
    instantiateWasm(imports, done) {
      const instance = new WebAssembly.Instance(module, imports);
      done(instance);
      return instance.exports;
    },
  });
}
