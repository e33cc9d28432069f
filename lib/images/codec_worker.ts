/** The worker that all work on pixels is done in. It takes one job at a time. */
import { free, orient, paint, type Pixels, startEdit } from "../canvas/mod.ts";
import { toGatewayError } from "../errors.ts";
import { type Decoder, encodeFile, openDecoder } from "./codec_files.ts";
import type { FromWorker, Job, JobResults, ToWorker } from "./codec_messages.ts";

/** What a worker's global scope has, and the types of a window have not. */
interface Scope {
  postMessage(message: FromWorker, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToWorker>) => void): void;
}

const scope = globalThis as unknown as Scope;
let receive: ((file: Uint8Array<ArrayBuffer>) => void) | undefined;

scope.addEventListener("message", ({ data }) => {
  if ("file" in data) receive?.(data.file);
  else void answer(data.job);
});

async function answer(job: Job): Promise<void> {
  try {
    const value = await work(job);
    const { buffer } = value instanceof Uint8Array ? value : value.data;
    scope.postMessage({ value }, [buffer]);
  } catch (thrown) {
    const { kind, message, param, cause } = toGatewayError(thrown);
    const why = cause === undefined ? undefined : String(cause);
    scope.postMessage({ error: { kind, message, ...(param && { param }), ...(why && { cause: why }) } }, []);
  }
}

async function work(job: Job): Promise<JobResults[Job["type"]]> {
  switch (job.type) {
    case "encode":
      return await encodeFile(job.pixels, job.encoding);
    case "decode":
      return await openDecoder().decode(job.bytes);
    case "convert":
      return await encodeFile(await openDecoder().decode(job.bytes), job.encoding);
    case "paint":
      return await encodeFile(paint(job.painting), job.painting.encoding);
    case "edit":
      return await encodeFile(await edit(job), job.painting.encoding);
  }
}

/** Each image is decoded when the one before it has become a part of the result, and its memory is free. */
async function edit({ painting, orientations, maskOrientation }: Extract<Job, { type: "edit" }>): Promise<Pixels> {
  const hasMask = maskOrientation !== undefined;
  const decoder = openDecoder();
  const editor = startEdit({ ...painting, count: orientations.length, hasMask });
  for (const [at, orientation] of orientations.entries()) editor.add(await open(decoder, { at, orientation }));
  return editor.finish(
    hasMask ? await open(decoder, { at: orientations.length, orientation: maskOrientation }) : undefined,
  );
}

async function open(decoder: Decoder, { at, orientation }: { at: number; orientation: number }): Promise<Pixels> {
  const sent = new Promise<Uint8Array<ArrayBuffer>>((resolve) => receive = resolve);
  scope.postMessage({ needs: at }, []);
  const file = await sent;
  const pixels = await decoder.decode(file);
  free(file);
  const shown = orient(pixels, orientation);
  if (shown !== pixels) free(pixels.data);
  return shown;
}
