/** What the worker is asked and what it answers. Everything here goes through `postMessage`. */
import type { ErrorKind } from "../errors.ts";
import type { Encoding } from "./codec_files.ts";
import type { Pixels } from "./pixels.ts";
import type { Size } from "./types.ts";

/** One of a request's pictures, or a preview of it. */
export interface Painting {
  prompt: string;
  size: Size;
  /** Which of the request's pictures. */
  index: number;
  /** Present for a preview: 0 is the coarsest. */
  step?: number;
  encoding: Encoding;
}

/** One task. The files of an edit travel before it, one message each: first the pictures, then the mask. */
export type Job =
  | { type: "encode"; pixels: Pixels; encoding: Encoding }
  | { type: "decode"; bytes: Uint8Array<ArrayBuffer> }
  | { type: "convert"; bytes: Uint8Array<ArrayBuffer>; encoding: Encoding }
  | { type: "paint"; painting: Painting }
  | { type: "edit"; painting: Painting; orientations: number[]; maskOrientation?: number };

/** What each task gives. The painter's pictures come as base64, ready to be sent. */
export interface JobResults {
  encode: Uint8Array<ArrayBuffer>;
  decode: Pixels;
  convert: Uint8Array<ArrayBuffer>;
  paint: string;
  edit: string;
}

/** What a worker is sent. */
export type ToWorker = { file: Uint8Array<ArrayBuffer> } | { job: Job };

/** What a worker sends, once for each job. */
export type FromWorker =
  | { value: JobResults[Job["type"]] }
  | { error: { kind: ErrorKind; message: string; param?: string; cause?: string } };
