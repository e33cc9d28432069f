// The packages' own types need those of a browser and of Emscripten. These are the signatures that are used here: each
// module is the loader of one WebAssembly codec.

declare namespace Jsquash {
  type EncoderOptions = Readonly<Record<string, number | boolean>>;

  interface Encoder {
    /** Encodes RGBA pixels to a file; null or empty after a failure. All options are required. */
    encode(
      pixels: Uint8Array,
      width: number,
      height: number,
      options: EncoderOptions,
    ): Uint8Array<ArrayBuffer> | null;
  }

  interface Decoder {
    /** RGBA pixels; null for a file that is damaged or animated. */
    decode(file: Uint8Array): { width: number; height: number; data: Uint8ClampedArray<ArrayBuffer> } | null;
  }

  type Loader<T> = (options: {
    noInitialRun: boolean;
    /** Makes the instance, hands it to `done`, and returns its exports. */
    instantiateWasm(
      imports: WebAssembly.Imports,
      done: (instance: WebAssembly.Instance) => void,
    ): WebAssembly.Exports;
  }) => Promise<T>;
}

declare module "@jsquash/jpeg/encoder" {
  const load: Jsquash.Loader<Jsquash.Encoder>;
  export default load;
}

declare module "@jsquash/webp/encoder" {
  const load: Jsquash.Loader<Jsquash.Encoder>;
  export default load;
}

declare module "@jsquash/webp/encoder_simd" {
  const load: Jsquash.Loader<Jsquash.Encoder>;
  export default load;
}

declare module "@jsquash/webp/decoder" {
  const load: Jsquash.Loader<Jsquash.Decoder>;
  export default load;
}

declare module "@jsquash/jpeg/meta" {
  export const defaultOptions: Jsquash.EncoderOptions;
}

declare module "@jsquash/webp/meta" {
  export const defaultOptions: Jsquash.EncoderOptions;
}
