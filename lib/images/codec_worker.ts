/** The worker that all work on pixels is done in. It takes one job at a time. */
import { Buffer } from "node:buffer";
import { toGatewayError } from "../errors.ts";
import { editPictures } from "./canvas/edit.ts";
import { paint } from "./canvas/paint.ts";
import { decodeFile, encodeFile } from "./codec_files.ts";
import type { FromWorker, Job, JobResults, Painting, ToWorker } from "./codec_jobs.ts";
import { orient, type Pixels } from "./pixels.ts";

/** What a worker's global scope has, and the types of a window have not. */
interface Scope {
  postMessage(message: FromWorker, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToWorker>) => void): void;
}

const scope = globalThis as unknown as Scope;
let files: Uint8Array<ArrayBuffer>[] = [];

scope.addEventListener("message", ({ data }) => {
  if ("file" in data) files.push(data.file);
  else void answer(data.job);
});

async function answer(job: Job): Promise<void> {
  const taken = files;
  files = [];
  try {
    const value = await work(job, taken);
    const bytes = typeof value === "string" ? undefined : value instanceof Uint8Array ? value : value.data;
    scope.postMessage({ value }, bytes === undefined ? [] : [bytes.buffer]);
  } catch (thrown) {
    const { kind, message, param, cause } = toGatewayError(thrown);
    const why = cause === undefined ? undefined : String(cause);
    scope.postMessage({ error: { kind, message, ...(param && { param }), ...(why && { cause: why }) } }, []);
  }
}

async function work(job: Job, files: readonly Uint8Array<ArrayBuffer>[]): Promise<JobResults[Job["type"]]> {
  switch (job.type) {
    case "encode":
      return await encodeFile(job.pixels, job.encoding);
    case "decode":
      return await decodeFile(job.bytes);
    case "convert":
      return await encodeFile(await decodeFile(job.bytes), job.encoding);
    case "paint":
      return await toBase64(paint(job.painting), job.painting);
    case "edit": {
      const images: Pixels[] = [];
      for (const [at, orientation] of job.orientations.entries()) images.push(await open(files[at], orientation));
      const mask = job.maskOrientation === undefined
        ? undefined
        : await open(files[job.orientations.length], job.maskOrientation);
      return await toBase64(editPictures({ ...job.painting, images, mask }), job.painting);
    }
  }
}

async function open(file: Uint8Array | undefined, orientation: number): Promise<Pixels> {
  return orient(await decodeFile(file ?? new Uint8Array()), orientation);
}

async function toBase64(pixels: Pixels, { encoding }: Painting): Promise<string> {
  const { buffer, byteOffset, byteLength } = await encodeFile(pixels, encoding);
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}
