/** The WebAssembly codecs of `@jsquash`. The memory of an instance only grows, so each image gets a new instance. */
import type { Pixels } from "../canvas/mod.ts";

/** Encodes a JPEG. The alpha channel is ignored. */
export async function encodeJpeg(pixels: Pixels, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const [{ default: load }, { defaultOptions }] = await Promise.all([
    import("@jsquash/jpeg/encoder"),
    import("@jsquash/jpeg/meta"),
  ]);
  const module = await compiled(import.meta.resolve("@jsquash/jpeg/encoder.wasm"));
  // Progressive files are a few percent smaller and take twice as long.
  const options = { ...defaultOptions, baseline: true, progressive: false, quality };
  return encodeWith(await start(load, module), pixels, options);
}

/** Encodes a WebP. */
export async function encodeWebp(pixels: Pixels, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const { defaultOptions } = await import("@jsquash/webp/meta");
  return encodeWith(await startWebpEncoder(), pixels, { ...defaultOptions, quality });
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
  options: Jsquash.EncoderOptions,
): Uint8Array<ArrayBuffer> {
  const file = encoder.encode(data, width, height, options);
  if (file === null || file.length === 0) throw new Error("the encoder returned no file");
  return file;
}

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
