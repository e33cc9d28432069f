/** The module of a codec worker, which runs one task at a time. */
import { free, orient, paint, type Pixels, startEdit } from "../canvas/mod.ts";
import { toGatewayError } from "../errors.ts";
import { type Decoder, encodeFile, openDecoder } from "./codec_files.ts";
import type { CodecTask, MessageFromWorker, MessageToWorker } from "./codec_messages.ts";

/** Members of a worker's global scope that the window's types lack. */
interface Scope {
  postMessage(message: MessageFromWorker, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<MessageToWorker>) => void): void;
}

const scope = globalThis as unknown as Scope;
let receive: ((file: Uint8Array<ArrayBuffer>) => void) | undefined;

scope.addEventListener("message", ({ data }) => {
  if ("file" in data) receive?.(data.file);
  else void runTask(data.job);
});

async function runTask(job: CodecTask): Promise<void> {
  try {
    const value = await makeFile(job);
    scope.postMessage({ value }, [value.buffer]);
  } catch (thrown) {
    const { kind, message, param, cause } = toGatewayError(thrown);
    const why = cause === undefined ? undefined : String(cause);
    scope.postMessage({ error: { kind, message, ...(param && { param }), ...(why && { cause: why }) } }, []);
  }
}

async function makeFile(job: CodecTask): Promise<Uint8Array<ArrayBuffer>> {
  switch (job.type) {
    case "convert":
      return await encodeFile(await openDecoder().decode(job.bytes), job.encoding);
    case "paint":
      return await encodeFile(paint(job.painting), job.painting.encoding);
    case "edit":
      return await encodeFile(await edit(job), job.painting.encoding);
  }
}

/** Paints an edit. Images are decoded one after another, so that only one is in memory at a time. */
async function edit(
  { painting, orientations, maskOrientation }: Extract<CodecTask, { type: "edit" }>,
): Promise<Pixels> {
  const hasMask = maskOrientation !== undefined;
  const decoder = openDecoder();
  const editor = startEdit({ ...painting, count: orientations.length, hasMask });
  for (const [index, orientation] of orientations.entries()) {
    editor.add(await receiveImage(decoder, { index, orientation }));
  }
  return editor.finish(
    hasMask ? await receiveImage(decoder, { index: orientations.length, orientation: maskOrientation }) : undefined,
  );
}

/** Requests a file of the task, and decodes it in its displayed orientation. */
async function receiveImage(
  decoder: Decoder,
  { index, orientation }: { index: number; orientation: number },
): Promise<Pixels> {
  const received = new Promise<Uint8Array<ArrayBuffer>>((resolve) => receive = resolve);
  scope.postMessage({ needs: index }, []);
  const file = await received;
  const pixels = await decoder.decode(file);
  free(file);
  const oriented = orient(pixels, orientation);
  if (oriented !== pixels) free(pixels.data);
  return oriented;
}
