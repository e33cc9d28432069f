/**
 * A pool of codec workers. They start when an image is first needed, take tasks from one bounded queue and end after a
 * while without work.
 */
import { GatewayError } from "../errors.ts";
import type { CodecTask, MessageFromWorker, MessageToWorker, TaskOutcome } from "./codec_messages.ts";

/** One core is left to the event loop, so a second worker needs a third core. */
const MAX_WORKERS = navigator.hardwareConcurrency > 2 ? 2 : 1;
/**
 * Most pixels of all running tasks: the largest upload and the largest image made from it. A larger task runs alone. A
 * pixel takes up to 25 bytes while it is decoded or encoded.
 */
const MAX_PIXELS_AT_ONCE = 25_165_824;
/** Pixels after which a worker is replaced, because V8 keeps unused WebAssembly memory for a long time. */
const RENEWAL_PIXELS = 4_194_304;
/** Longest queue. */
const MAX_WAITING = 256;
/** `retry-after` of refused tasks, in milliseconds. */
const RETRY_MS = 5_000;
/** Longest time for one task, in milliseconds: a crafted file can take hours to decode. */
const MAX_JOB_MS = 120_000;
/** Idle time after which a worker ends, in milliseconds. */
const IDLE_MS = 15_000;

/** Permissions of a worker: its own modules, and one variable that a package reads. */
const PERMISSIONS: Deno.PermissionOptionsObject = {
  read: "inherit",
  ffi: false,
  env: ["IMAGESCRIPT_WASM_SIMD"],
  import: false,
  net: false,
  run: false,
  sys: false,
  write: false,
};

/** Options of a task. */
export interface JobOptions {
  /** Cancels the task, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Files that the task needs; each is copied when the worker requests it. */
  files?: readonly Uint8Array<ArrayBuffer>[];
  /** Most pixels that the task holds in memory at once. */
  pixels: number;
  /** Buffers that are transferred to the worker and become unusable here. */
  transfer?: Transferable[];
}

interface Task {
  job: CodecTask;
  files: readonly Uint8Array<ArrayBuffer>[];
  pixels: number;
  transfer: Transferable[];
  settle(answer: TaskOutcome | { thrown: unknown }): void;
}

interface Slot {
  worker: Worker;
  /** Pixels of all tasks it has done. */
  pixels: number;
  task?: Task;
  timer?: ReturnType<typeof setTimeout>;
}

const waiting: Task[] = [];
const slots = new Set<Slot>();

/**
 * Runs a task in a worker, in order of arrival.
 * @throws {GatewayError} the task's own error; `overloaded` when the queue is full; `timeout` when it takes too long
 */
export function runJob(
  job: CodecTask,
  { signal, files = [], pixels, transfer = [] }: JobOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (waiting.length >= MAX_WAITING) {
      return reject(new GatewayError("overloaded", "Too many images are being generated", { retryAfterMs: RETRY_MS }));
    }
    const task: Task = {
      job,
      files,
      pixels,
      transfer,
      settle(answer) {
        signal?.removeEventListener("abort", abort);
        if ("thrown" in answer) reject(answer.thrown);
        else if ("value" in answer) resolve(answer.value);
        else reject(toError(answer.error));
      },
    };
    const abort = () => drop(task, signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    waiting.push(task);
    serve();
  });
}

/** Ends idle workers at once. */
export function endIdleWorkers(): void {
  for (const slot of slots) if (slot.task === undefined) end(slot);
}

function toError({ kind, message, param, cause }: Extract<TaskOutcome, { error: unknown }>["error"]): GatewayError {
  return new GatewayError(kind, message, { ...(param !== undefined && { param }), cause });
}

/** Cancels a task. A running task cannot be interrupted, so its worker is terminated. */
function drop(task: Task, reason: unknown): void {
  const at = waiting.indexOf(task);
  if (at >= 0) waiting.splice(at, 1);
  for (const slot of slots) if (slot.task === task) end(slot);
  task.settle({ thrown: reason });
  // One signal may cancel many tasks, so new workers start after all of them are removed.
  queueMicrotask(serve);
}

/** Assigns waiting tasks to idle workers and starts workers, within the limits of workers and pixels. */
function serve(): void {
  for (let [task] = waiting; task !== undefined; [task] = waiting) {
    const running = [...slots].flatMap((slot) => slot.task ?? []);
    const pixels = running.reduce((sum, { pixels }) => sum + pixels, task.pixels);
    if (running.length > 0 && pixels > MAX_PIXELS_AT_ONCE) return;
    const free = [...slots].find((slot) => slot.task === undefined) ??
      (slots.size < MAX_WORKERS ? start() : undefined);
    if (free === undefined) return;
    waiting.shift();
    give(task, free);
  }
}

function give(task: Task, slot: Slot): void {
  slot.task = task;
  slot.pixels += task.pixels;
  clearTimeout(slot.timer);
  slot.timer = setTimeout(
    () => drop(task, new GatewayError("timeout", `Cannot make the image within ${MAX_JOB_MS / 1000} seconds`)),
    MAX_JOB_MS,
  );
  try {
    slot.worker.postMessage({ job: task.job } satisfies MessageToWorker, task.transfer);
  } catch (thrown) {
    drop(task, thrown);
  }
}

function start(): Slot {
  const worker = new Worker(new URL("./codec_worker.ts", import.meta.url), {
    type: "module",
    name: "images",
    deno: { permissions: PERMISSIONS },
  });
  const slot: Slot = { worker, pixels: 0 };
  worker.onmessage = ({ data }: MessageEvent<MessageFromWorker>) => {
    // A message may arrive after the worker was terminated.
    if (!slots.has(slot)) return;
    const task = slot.task;
    if ("needs" in data) {
      const file = task?.files[data.needs];
      if (file !== undefined) worker.postMessage({ file } satisfies MessageToWorker);
      return;
    }
    delete slot.task;
    clearTimeout(slot.timer);
    if (slot.pixels >= RENEWAL_PIXELS) end(slot);
    task?.settle(data);
    serve();
    if (slot.task !== undefined || !slots.has(slot)) return;
    slot.timer = setTimeout(() => end(slot), IDLE_MS);
    Deno.unrefTimer(slot.timer);
  };
  // An uncaught error in a worker must not end the process.
  worker.onerror = (event) => {
    event.preventDefault();
    const task = slot.task;
    end(slot);
    task?.settle({ thrown: new GatewayError("internal", "Cannot make the image", { cause: event.message }) });
    serve();
  };
  slots.add(slot);
  return slot;
}

function end(slot: Slot): void {
  slots.delete(slot);
  clearTimeout(slot.timer);
  slot.worker.terminate();
  delete slot.task;
}
