/** Messages between the codec pool and its workers. `postMessage` clones or transfers all of them. */
import type { ErrorKind } from "../errors.ts";
import type { Encoding } from "./codec_files.ts";
import type { Pixels } from "../canvas/mod.ts";
import type { Size } from "./types.ts";

/** An image, or a preview of one, that the embedded model paints. */
export interface PaintOptions {
  prompt: string;
  size: Size;
  /** Index among the request's images. */
  index: number;
  /** Present for a preview; 0 is the coarsest. */
  step?: number;
  encoding: Encoding;
}

/** One task. The worker requests the files of an edit one by one, images first, then the mask. */
export type CodecTask =
  | { type: "encode"; pixels: Pixels; encoding: Encoding }
  | { type: "decode"; bytes: Uint8Array<ArrayBuffer> }
  | { type: "convert"; bytes: Uint8Array<ArrayBuffer>; encoding: Encoding }
  | { type: "paint"; painting: PaintOptions }
  | { type: "edit"; painting: PaintOptions; orientations: number[]; maskOrientation?: number };

/** Results by task type: files or pixels. */
export interface CodecResults {
  encode: Uint8Array<ArrayBuffer>;
  decode: Pixels;
  convert: Uint8Array<ArrayBuffer>;
  paint: Uint8Array<ArrayBuffer>;
  edit: Uint8Array<ArrayBuffer>;
}

/** Messages to a worker: tasks and requested files. */
export type MessageToWorker = { job: CodecTask } | { file: Uint8Array<ArrayBuffer> };

/** Messages from a worker: the index of the next file it needs, and one outcome per task. */
export type MessageFromWorker = { needs: number } | TaskOutcome;

/** Result or error of a task. */
export type TaskOutcome =
  | { value: CodecResults[CodecTask["type"]] }
  | { error: { kind: ErrorKind; message: string; param?: string; cause?: string } };
