/** What the worker is asked and what it answers. Everything here goes through `postMessage`. */
import type { ErrorKind } from "../errors.ts";
import type { Encoding } from "./codec_files.ts";
import type { Pixels } from "../canvas/mod.ts";
import type { Size } from "./types.ts";

/** One of a request's images, or a preview of it. */
export interface Painting {
  prompt: string;
  size: Size;
  /** Which of the request's images. */
  index: number;
  /** Present for a preview: 0 is the coarsest. */
  step?: number;
  encoding: Encoding;
}

/** One task. The worker asks for the files of an edit when it comes to them: first the images, then the mask. */
export type Job =
  | { type: "encode"; pixels: Pixels; encoding: Encoding }
  | { type: "decode"; bytes: Uint8Array<ArrayBuffer> }
  | { type: "convert"; bytes: Uint8Array<ArrayBuffer>; encoding: Encoding }
  | { type: "paint"; painting: Painting }
  | { type: "edit"; painting: Painting; orientations: number[]; maskOrientation?: number };

/** What each task gives: files, and pixels. */
export interface JobResults {
  encode: Uint8Array<ArrayBuffer>;
  decode: Pixels;
  convert: Uint8Array<ArrayBuffer>;
  paint: Uint8Array<ArrayBuffer>;
  edit: Uint8Array<ArrayBuffer>;
}

/** What a worker is sent: jobs, and the files that it asks for. */
export type ToWorker = { job: Job } | { file: Uint8Array<ArrayBuffer> };

/** What a worker sends: which file of its job it needs next, and once for each job what came of it. */
export type FromWorker = { needs: number } | Outcome;

/** What came of a job. */
export type Outcome =
  | { value: JobResults[Job["type"]] }
  | { error: { kind: ErrorKind; message: string; param?: string; cause?: string } };
