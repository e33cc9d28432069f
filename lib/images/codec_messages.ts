/** The messages between the codec pool and its workers. They can be cloned or transferred by `postMessage`. */
import type { ErrorKind } from "../errors.ts";
import type { Encoding } from "./codec_files.ts";
import type { Size } from "./types.ts";

/** An image, or a preview of one, that the embedded model paints. */
export interface PaintOptions {
  prompt: string;
  size: Size;
  /** Index among the request's images. */
  index: number;
  /** Number of the preview, where 0 is the coarsest; absent for a final image. */
  step?: number;
  encoding: Encoding;
}

/** One task. The worker requests the files of an edit one by one, images first, then the mask. */
export type CodecTask =
  | { type: "convert"; bytes: Uint8Array<ArrayBuffer>; encoding: Encoding }
  | { type: "paint"; painting: PaintOptions }
  | { type: "edit"; painting: PaintOptions; orientations: number[]; maskOrientation?: number };

/** Messages to a worker: tasks and requested files. */
export type MessageToWorker = { job: CodecTask } | { file: Uint8Array<ArrayBuffer> };

/** Messages from a worker: the index of the next file that it needs, and one outcome per task. */
export type MessageFromWorker = { needs: number } | TaskOutcome;

/** The file that a task makes, or its error. */
export type TaskOutcome =
  | { value: Uint8Array<ArrayBuffer> }
  | { error: { kind: ErrorKind; message: string; param?: string; cause?: string } };
