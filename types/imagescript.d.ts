// The package types its whole, which loads native code at once. These are the signatures of the two parts that we load
// by themselves: its decoders (WebAssembly) and its encoders (native code).

declare module "imagescript/encoders" {
  interface Encoder {
    /** RGBA in, a file out. `quality` is 0 to 100. */
    encode(pixels: Uint8Array, options: { width: number; height: number; quality: number }): Uint8Array<ArrayBuffer>;
  }
  const encoders: { jpeg: Encoder; webp: Encoder };
  export default encoders;
}

declare module "imagescript/png" {
  const png: {
    init(): Promise<
      { decode(bytes: Uint8Array): { width: number; height: number; framebuffer: Uint8Array<ArrayBuffer> } }
    >;
  };
  export default png;
}

declare module "imagescript/jpeg" {
  const jpeg: {
    /** `format`: 0 is one byte of grey per pixel, 1 is RGB, 2 is CMYK. */
    init(): Promise<
      { decode(bytes: Uint8Array): { width: number; height: number; format: number; buffer: Uint8Array<ArrayBuffer> } }
    >;
  };
  export default jpeg;
}
