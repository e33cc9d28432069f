/**
 * A pool of codec workers. Workers start when they are first needed, take tasks from one bounded queue, in which API keys
 * take turns, and end after some time without work.
 */
import { GatewayError } from "../errors.ts";
import { TurnQueue } from "../scheduler.ts";
import type { CodecTask, MessageFromWorker, MessageToWorker, TaskOutcome } from "./codec_messages.ts";

/** Maximum number of workers. One core is left to the event loop, so a second worker needs a third core. */
const MAX_WORKERS = navigator.hardwareConcurrency > 2 ? 2 : 1;
/**
 * Maximum number of pixels of all running tasks: the largest upload and the largest image made from it. A larger task
 * runs alone. A pixel takes up to 25 bytes while it is decoded or encoded.
 */
const MAX_RUNNING_PIXELS = 25_165_824;
/** Pixels after which a worker is replaced, because V8 keeps unused WebAssembly memory for a long time. */
const RENEWAL_PIXELS = 4_194_304;
/** Maximum number of tasks in the queue. */
const MAX_WAITING = 256;
/** `retry-after` of refused tasks, in milliseconds. */
const RETRY_MS = 5_000;
/** Longest time for one task, in milliseconds. A malicious file can take hours to decode. */
const MAX_JOB_MS = 120_000;
/** Idle time after which a worker ends, in milliseconds. */
const IDLE_MS = 15_000;

/** Permissions of a worker: it can read its modules, and one environment variable that a package reads. */
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
  /** Files that the task needs. Each is copied when the worker requests it. */
  files?: readonly Uint8Array<ArrayBuffer>[];
  /** Maximum number of pixels that the task has in memory at once. */
  pixels: number;
  /** Buffers that are transferred to the worker, so that they become unusable here. */
  transfer?: Transferable[];
}

interface Task {
  job: CodecTask;
  files: readonly Uint8Array<ArrayBuffer>[];
  pixels: number;
  transfer: Transferable[];
  /** Settles the promise of `runJob`. */
  settle(answer: TaskOutcome | { thrown: unknown }): void;
}

/** A worker with its current task. */
interface Slot {
  worker: Worker;
  /** Pixels of all tasks that the worker has received. */
  pixels: number;
  task?: Task;
  timer?: ReturnType<typeof setTimeout>;
}

const waiting = new TurnQueue<Task>();
const slots = new Set<Slot>();

/**
 * Runs a task in a worker. API keys take turns.
 * @throws {GatewayError} the task's own error; `overloaded` when the queue is full; `timeout` when it takes too long
 */
export function runJob(
  job: CodecTask,
  { signal, files = [], pixels, transfer = [] }: JobOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (waiting.size >= MAX_WAITING) {
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
    const abort = () => cancelTask(task, signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    waiting.add(task);
    assignTasks();
  });
}

/** Ends idle workers at once. */
export function endIdleWorkers(): void {
  for (const slot of slots) if (slot.task === undefined) endWorker(slot);
}

function toError({ kind, message, param, cause }: Extract<TaskOutcome, { error: unknown }>["error"]): GatewayError {
  return new GatewayError(kind, message, { ...(param !== undefined && { param }), cause });
}

/** Cancels a task. A running task cannot be interrupted, so its worker is terminated. */
function cancelTask(task: Task, reason: unknown): void {
  waiting.remove(task);
  for (const slot of slots) if (slot.task === task) endWorker(slot);
  task.settle({ thrown: reason });
  // One signal may cancel many tasks, so new workers start after all of them are removed.
  queueMicrotask(assignTasks);
}

/** Assigns waiting tasks to idle workers, and starts workers, within the limits of workers and pixels. */
function assignTasks(): void {
  for (let task = waiting.next; task !== undefined; task = waiting.next) {
    const running = [...slots].flatMap((slot) => slot.task ?? []);
    const pixels = running.reduce((sum, { pixels }) => sum + pixels, task.pixels);
    if (running.length > 0 && pixels > MAX_RUNNING_PIXELS) return;
    const free = [...slots].find((slot) => slot.task === undefined) ??
      (slots.size < MAX_WORKERS ? startWorker() : undefined);
    if (free === undefined) return;
    waiting.take();
    assignTask(task, free);
  }
}

function assignTask(task: Task, slot: Slot): void {
  slot.task = task;
  slot.pixels += task.pixels;
  clearTimeout(slot.timer);
  slot.timer = setTimeout(
    () => cancelTask(task, new GatewayError("timeout", `Cannot make the image within ${MAX_JOB_MS / 1000} seconds`)),
    MAX_JOB_MS,
  );
  try {
    slot.worker.postMessage({ job: task.job } satisfies MessageToWorker, task.transfer);
  } catch (thrown) {
    cancelTask(task, thrown);
  }
}

function startWorker(): Slot {
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
    if (slot.pixels >= RENEWAL_PIXELS) endWorker(slot);
    task?.settle(data);
    assignTasks();
    if (slot.task !== undefined || !slots.has(slot)) return;
    slot.timer = setTimeout(() => endWorker(slot), IDLE_MS);
    Deno.unrefTimer(slot.timer);
  };
  // An uncaught error in a worker must not end the process.
  worker.onerror = (event) => {
    event.preventDefault();
    const task = slot.task;
    endWorker(slot);
    task?.settle({ thrown: new GatewayError("internal", "Cannot make the image", { cause: event.message }) });
    assignTasks();
  };
  slots.add(slot);
  return slot;
}

function endWorker(slot: Slot): void {
  slots.delete(slot);
  clearTimeout(slot.timer);
  slot.worker.terminate();
  delete slot.task;
}
