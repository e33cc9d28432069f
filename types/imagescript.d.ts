// The package's own types describe its main module, which loads native code. These are the signatures of its WebAssembly
// decoders, which are loaded without the rest.

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
